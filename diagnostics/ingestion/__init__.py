"""What comes in: events, outcomes, deploys, schemas, quotas, rejects."""
