"""The cost of tokens: custom and listed prices."""
