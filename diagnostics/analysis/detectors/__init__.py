"""When a series is worse than it should be: one file a detector, all of them pure."""
