"""No secret is kept: the one door to storage, project rules, re-scrubbing."""
