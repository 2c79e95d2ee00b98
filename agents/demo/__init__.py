"""Demonstration data: two weeks of runs with known incidents, the same for the same seed."""
