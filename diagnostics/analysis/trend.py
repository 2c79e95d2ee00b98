"""Whether a share rises: the test for a trend (Cochran and Armitage)."""

from collections.abc import Sequence
from itertools import accumulate
from math import sqrt
from typing import NamedTuple

SURE_TREND = 2.6
"""Standard deviations from which on a trouble is told to be getting worse."""
RISEN = 1.3
"""How many times as much must fail lately as at first."""
Slot = tuple[int, int]
"""Calls of a stretch of time, and how many failed."""


class RisingShare(NamedTuple):
    """The share of calls that fail, in the first third of a trouble and in its latest."""

    first: float
    latest: float


def find_rise(slots: Sequence[Slot]) -> RisingShare | None:
    """Return how much a trouble got worse after it had begun; None: it stays at one level."""
    calls, failed = (sum(column) for column in zip(*slots, strict=True)) if slots else (0, 0)
    if not 0 < failed < calls:
        return None
    share = failed / calls
    middle = sum(at * slot[0] for at, slot in enumerate(slots)) / calls
    tilt = sum((at - middle) * slot[1] for at, slot in enumerate(slots))
    width = sum((at - middle) ** 2 * slot[0] for at, slot in enumerate(slots))
    if tilt < SURE_TREND * sqrt(share * (1 - share) * width):
        return None
    first, latest = _share_within(slots, 0, calls / 3), _share_within(slots, 2 * calls / 3, calls)
    return RisingShare(first, latest) if latest >= RISEN * first else None


def _share_within(slots: Sequence[Slot], begin: float, end: float) -> float:
    """Return the share that fails of the calls between two ranks, whole slots."""
    before = accumulate((slot[0] for slot in slots), initial=0)
    kept = [slot for rank, slot in zip(before, slots, strict=False) if begin <= rank < end]
    calls = sum(slot[0] for slot in kept)
    return sum(slot[1] for slot in kept) / calls if calls else 0.0
