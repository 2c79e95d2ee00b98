"""Stories of a fourth making: goals differ in hardness, causes overlap, comparisons lack."""
