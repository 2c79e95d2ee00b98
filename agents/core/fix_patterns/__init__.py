"""Fix patterns: what has put answers right before, told to later prompts in our own words (X-14).

1. A ladder that recovers shows what was wrong, where, and what was different in the good answer.
2. That is kept as names of closed sets: error class, code, pointer, change, kinds of values.
3. Three distinct runs make it a hint; the words of a hint come from a table of ours.

Nothing a model writes gets through: a name that is not ours is a star.
"""

from agents.core.fix_patterns.kinds import Change, FixPattern, Shape
from agents.core.fix_patterns.learning import Recovery, patterns_of
from agents.core.fix_patterns.standing import (
    Hint,
    Mode,
    Record,
    Rules,
    Standing,
    choose_hints,
    is_withheld,
    standing_of,
)
from agents.core.fix_patterns.wording import describe, describe_place

__all__ = [
    "Change",
    "FixPattern",
    "Hint",
    "Mode",
    "Record",
    "Recovery",
    "Rules",
    "Shape",
    "Standing",
    "choose_hints",
    "describe",
    "describe_place",
    "is_withheld",
    "patterns_of",
    "standing_of",
]
