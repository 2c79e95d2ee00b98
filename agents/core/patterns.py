"""Goals that planners handle well, by the pattern they share; shown where a goal has failed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern: when it fits, goals that follow it, and why it works."""

    title: str
    why: str
    examples: tuple[str, ...]


PATTERNS = (
    Pattern(
        "One outcome",
        "A goal that names a single result leaves the planner little to get wrong.",
        ("Greet Ada by name.", "Fetch https://example.com and give its status."),
    ),
    Pattern(
        "A short list of steps, in order",
        "Steps that are written one after another become the steps of the plan.",
        ("Fetch the price list, then take the field total, then say it in one sentence.",),
    ),
    Pattern(
        "Values given with the goal",
        "Names, addresses and numbers in the goal need not be found out first.",
        ('From {"total": 42, "currency": "EUR"} take the total.',),
    ),
    Pattern(
        "Wishes apart from conditions",
        "Optional constraints may be dropped by the last attempt; required ones never are.",
        ("Goal: write a greeting. Required: under 100 characters. Optional: in rhyme.",),
    ),
)
