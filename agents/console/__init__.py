"""Console pages about goals, runs, models, failures and tools."""
