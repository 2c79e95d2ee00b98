"""Rows and how long they stay: partitions, rollups, retention, the outbox."""
