"""Failure groups: kinds of failure with their state, shares and history."""
