"""PostgreSQL with a pool that checks connections without a query."""
