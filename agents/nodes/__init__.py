"""The nodes of the graph: plan, execute, check, act, respond; each moves one walk on."""
