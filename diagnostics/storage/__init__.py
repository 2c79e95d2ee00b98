"""Partitions, rollups, retention, purge: the rows and how long they stay."""
