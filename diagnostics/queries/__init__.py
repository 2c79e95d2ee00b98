"""Queries of events and rollups under a selection."""
