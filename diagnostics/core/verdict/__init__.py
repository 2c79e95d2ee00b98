"""Us or them: what a degradation began with, told from counts alone (no model is asked)."""
