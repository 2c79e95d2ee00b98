"""Diagnostics: events, redaction, failure groups, projects, keys."""
