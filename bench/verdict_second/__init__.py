"""Incidents of another making than `load_demo`'s: other projects, other ways to go wrong."""
