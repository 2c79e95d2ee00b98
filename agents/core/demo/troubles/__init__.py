"""Troubles from a seed: a week of runs, then something happens, and the truth is known."""
