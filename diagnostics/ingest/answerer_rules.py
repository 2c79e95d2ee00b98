"""Whether the answerer of a model has changed: pure rules over when each value was seen."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from diagnostics.store.windows import AHEAD

KEPT_EXACT_TO = timedelta(hours=1)
"""A stretch is extended at most this often, so its end is known to an hour."""
RETURN = timedelta(days=1)
"""A value that returns within this time is no change: gateways alternate."""
MOST_VALUES = 50
"""Per model, so that a sender with a new answerer for every call cannot fill the table."""


class SeenStretch(NamedTuple):
    """When a value was first and last seen."""

    first: datetime
    last: datetime

    def joined(self, other: "SeenStretch") -> "SeenStretch":
        """Return the stretch that holds both."""
        return SeenStretch(min(self.first, other.first), max(self.last, other.last))

    def counted(self, now: datetime) -> "SeenStretch":
        """Return the stretch as it counts: what a wrong clock dates ahead, when it arrives.

        Otherwise all later ones would be late.
        """
        return SeenStretch(*sorted(now if at > now + AHEAD else at for at in self))


class Placed(NamedTuple):
    """The stretch to store for a value, and the previous value if it is a change."""

    stretch: SeenStretch | None
    previous: str | None = None


def place(value: str, observed: SeenStretch, known: Mapping[str, SeenStretch]) -> Placed:
    """Compare an observed value with the known ones of the same model.

    The first value is no change. A late one, after which another was seen, is none either
    and is not stored: it counts as a change when it is seen again.
    """
    known_stretch = known.get(value)
    others = {other: stretch for other, stretch in known.items() if other != value}
    previous = max(others, key=lambda other: others[other].last, default=None)
    is_latest = previous is None or observed.last > others[previous].last
    if known_stretch is None:
        is_kept = is_latest and len(known) < MOST_VALUES
        return Placed(observed, previous) if is_kept else Placed(None)
    is_far = observed.first - known_stretch.last > RETURN
    if previous is not None and is_latest and is_far and others[previous].last > known_stretch.last:
        return Placed(observed, previous)
    is_due = observed.last - known_stretch.last >= KEPT_EXACT_TO
    return Placed(known_stretch.joined(observed) if is_due else None)
