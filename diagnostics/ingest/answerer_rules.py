"""When what answers the calls to a model has changed: pure rules over what was seen when."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

KEPT_EXACT_TO = timedelta(hours=1)
"""A stretch is extended no more often: the end of one is known to an hour."""
RETURN = timedelta(days=1)
"""What was seen within it and comes back is no change: a gateway goes to and fro."""
MOST_VALUES = 50
"""Of one model: a sender that names each call's answerer anew fills no table."""
SKEW = timedelta(minutes=5)
"""A time further ahead is a wrong clock's: it would make all that follows late."""


class SeenStretch(NamedTuple):
    """When a value was seen first and last."""

    first: datetime
    last: datetime

    def joined(self, other: "SeenStretch") -> "SeenStretch":
        """Return the stretch that holds both."""
        return SeenStretch(min(self.first, other.first), max(self.last, other.last))

    def until(self, most: datetime) -> "SeenStretch | None":
        """Return what of it is no later; None: nothing."""
        if self.first > most:
            return None
        return self if self.last <= most else SeenStretch(self.first, self.first)


class Placed(NamedTuple):
    """What is to be kept of a value that was seen, and what it came after if it is new."""

    stretch: SeenStretch | None
    previous: str | None = None


def place(value: str, seen: SeenStretch, known: Mapping[str, SeenStretch]) -> Placed:
    """Return what a value is among those that were known before of the same model.

    The first value is no change. One that is late, so that another was seen after it, is
    none either and is not kept: it changes when it is seen again.
    """
    own = known.get(value)
    others = {other: stretch for other, stretch in known.items() if other != value}
    previous = max(others, key=lambda other: others[other].last, default=None)
    is_latest = previous is None or seen.last > others[previous].last
    if own is None:
        is_kept = is_latest and len(known) < MOST_VALUES
        return Placed(seen, previous) if is_kept else Placed(None)
    if previous is not None and is_latest and _is_back(seen, own, others[previous]):
        return Placed(seen, previous)
    is_due = seen.last - own.last >= KEPT_EXACT_TO
    return Placed(own.joined(seen) if is_due else None)


def _is_back(seen: SeenStretch, own: SeenStretch, other: SeenStretch) -> bool:
    return seen.first - own.last > RETURN and other.last > own.last
