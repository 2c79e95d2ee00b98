"""One goal through plan, do, check and act."""
