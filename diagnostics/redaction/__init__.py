"""Redaction before storage, project rules, and redacting stored data again."""
