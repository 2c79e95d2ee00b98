"""The REST addresses of goals."""
