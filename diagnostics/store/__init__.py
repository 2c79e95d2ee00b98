"""Storage: events, partitions, rollups, retention, the outbox."""
