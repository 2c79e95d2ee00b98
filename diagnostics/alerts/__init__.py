"""Rules, incidents, back-tests: when to tell somebody, and what became of it."""
