"""Fix patterns: corrections that worked before, added to later prompts as hints.

1. A recovered run shows what was wrong, where, and what the valid answer has instead.
2. It is stored as names of closed sets: error class, code, pointer, change, kinds of values.
3. After three distinct runs it becomes a hint; its text is generated from our own templates.

No model output is stored: a name that is not of our schemas becomes a star.
"""
