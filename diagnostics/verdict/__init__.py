"""Which cause explains a degradation, since when, and what to change."""
