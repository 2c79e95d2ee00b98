"""What the person is told: made of what was done, never of what was claimed (S4-20 to S4-23)."""

from collections.abc import Sequence

from agents.core.actions.toolsets import Toolset

NOTHING = "Nothing was changed"
ALL_FAILED = (
    "The request couldn't be processed because of an internal error; nothing was changed. "
    "Diagnostics were recorded for the administrator."
)
# Reasons of a goal that ended without an applied action: nothing was decoded, nothing applied.
ACTIONS_FAILED = "actions_failed"
NO_ACTIONS = "actions_parse_failed"


def summarise(applied: Sequence[str], failed: int, toolset: Toolset) -> str:
    """Count what was applied by type, and how many entries failed in either layer.

    >>> summarise(["create", "complete"], 2, ENTRIES)
    "Created 1, completed 1 (2 couldn't be processed)"
    """
    counts = [
        f"{tool.past} {applied.count(tool.type)}" for tool in toolset.tools if tool.type in applied
    ]
    told = ", ".join(counts) or NOTHING
    note = f" ({failed} couldn't be processed)" if failed else ""
    return f"{told[0].upper()}{told[1:]}{note}"
