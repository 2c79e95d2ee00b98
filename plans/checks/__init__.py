"""Completion checks: commands, workspaces, and what a check decided."""
