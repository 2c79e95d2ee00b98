"""The first line of a page about a run that only events tell of."""

from collections.abc import Sequence
from dataclasses import dataclass

from diagnostics.core.charts.mark import Tone
from diagnostics.core.wording import plural


@dataclass(frozen=True, slots=True)
class Ending:
    """A terminal event: its kind, reason and status."""

    kind: str
    reason: str | None = None
    status: str | None = None


def outside_headline(states: Sequence[str], endings: Sequence[Ending]) -> tuple[Tone, str]:
    """Say how a run stands by the states of its attempts and its terminal events, in order.

    The last thing that is known decides: an agent may yet send more.
    """
    made = plural(len(states), "attempt")
    degraded = [ending for ending in endings if ending.kind == "degraded"]
    if degraded:
        last = degraded[-1]
        reason = (last.reason or "degraded").replace("_", " ")
        if last.status == "stubbed":
            return "bad", f"A stub plan stood in after {made}: {reason}"
        return "bad", f"Failed softly after {made}: {reason}"
    if not states:
        return "quiet", "Nothing is known of its attempts"
    if states[-1] == "valid":
        first = len(states) == 1
        told = "at the first attempt" if first else f"after a repair, {made}"
        return "good", f"Valid {told}"
    return "warn", f"{made.capitalize()}, none valid so far"
