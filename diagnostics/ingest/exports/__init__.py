"""Files that other tools have exported, read as spans and log records."""
