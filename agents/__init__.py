"""Who plans: providers, models, the attempt engine, goals."""
