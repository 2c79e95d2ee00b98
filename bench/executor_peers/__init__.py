"""The same no-op steps in other engines, each run by the benchmark's own environment."""
