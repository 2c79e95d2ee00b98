"""The long form of the fault tests: many runs and goals under many faults, with figures."""
