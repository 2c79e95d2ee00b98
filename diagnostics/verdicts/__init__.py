"""Us or them, since when: the verdict of a selection."""
