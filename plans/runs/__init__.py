"""Executing plans: claims, the inline and the distributed runner, results."""
