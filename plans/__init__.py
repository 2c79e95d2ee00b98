"""The work: contracts, validation, execution, tools, runs and steps."""
