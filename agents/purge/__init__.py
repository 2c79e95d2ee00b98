"""Deleting what was recorded of a run or a project."""
