"""What every REST endpoint is made of: bodies, cursors, faults, filters, OpenAPI."""
