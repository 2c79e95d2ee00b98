"""Tool calls of a goal of mode actions: applied, stored, undone."""
