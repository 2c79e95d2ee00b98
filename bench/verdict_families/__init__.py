"""Families of incidents drawn as counts, written from docs/verdict.md and not from the code."""
