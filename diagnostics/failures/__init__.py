"""Failure groups: lists, counts, states, advice."""
