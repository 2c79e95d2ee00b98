"""Reads of events and rollups under the filters of the console."""
