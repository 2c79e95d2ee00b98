"""English, as this product writes it."""
