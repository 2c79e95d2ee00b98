"""Telemetry in: events, OpenTelemetry, outcomes, deploys, schemas; quotas and rejects."""
