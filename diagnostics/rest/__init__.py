"""The parts of every REST endpoint: bodies, cursors, faults, filters, OpenAPI."""
