"""Files exported by other tools, read as spans and log records."""
