"""Fix patterns: what has put answers right before, told to later prompts in our own words.

1. A ladder that recovers shows what was wrong, where, and what was different in the good answer.
2. That is kept as names of closed sets: error class, code, pointer, change, kinds of values.
3. Three distinct runs make it a hint; the words of a hint come from a table of ours.

Nothing a model writes gets through: a name that is not ours is a star.
"""
