"""The checker of an agent's own schemas."""
