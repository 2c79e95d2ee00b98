"""The REST addresses of plans."""
