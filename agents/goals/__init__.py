"""Goals: their requests, budgets, state and outcome."""
