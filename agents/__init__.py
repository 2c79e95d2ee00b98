"""Planning: providers, models, attempts, goals."""
