"""The settings of a project: one page each, for its administrators."""
