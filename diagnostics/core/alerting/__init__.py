"""Alert rules as plain rules: what is asked, what it means, what becomes of it; no I/O."""
