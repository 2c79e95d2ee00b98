"""The rules of plans: contract, validation, execution. No Django, no I/O, no clock."""
