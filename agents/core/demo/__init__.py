"""A made-up fortnight of planning, the same for the same seed and moment.

Pure: the moment and the randomness are arguments. What models "wrote" here goes through
the product's own parser, so errors, lines and columns are those of a real answer.
"""
