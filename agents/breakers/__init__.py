"""Circuit breakers: when a model is given a rest, what moved them, and moving them by hand."""
