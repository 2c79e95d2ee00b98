"""Console pages about what went wrong, and the frame of every page."""
