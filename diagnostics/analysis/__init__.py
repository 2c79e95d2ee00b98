"""Statistics of rates, the status of a series, its onset. Pure."""
