"""How runs are executed: inline in one task, or distributed over all workers.

Both call the same pure step function; they differ in who calls it and when results
are committed.
"""
