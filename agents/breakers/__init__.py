"""Circuit breakers of models: their rows, the guard before a call, pages and endpoints."""
