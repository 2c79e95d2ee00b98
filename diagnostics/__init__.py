"""What went wrong: events, redaction, failure groups, projects, keys."""
