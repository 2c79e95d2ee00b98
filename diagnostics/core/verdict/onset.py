"""Since when: the moment that best divides a stretch into usual and worse."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

LOWEST = 0.002
HIGHEST = 0.98
LIKELY = 1.92
"""Moments whose log likelihood is within this of the best are a 95 % interval."""


class Count(NamedTuple):
    """Calls and failures of one bucket of time."""

    calls: int
    failed: int


@dataclass(frozen=True, slots=True)
class Onset:
    """Indexes of buckets: the likeliest first bad one, and between which it lies."""

    at: int
    low: int
    high: int
    gain: float
    """How much likelier a change is than none (log)."""


def find_onset(buckets: Sequence[Count], usual: float) -> Onset | None:
    """Find the first bucket of a worsening that still lasts; None when there is none.

    `usual` is the expected share of failures. For each candidate the rate after it is what
    was seen after it; linear in the number of buckets.
    """
    share = min(max(usual, LOWEST), HIGHEST)
    gains: list[float] = []
    calls = failed = 0
    for bucket in reversed(buckets):
        calls, failed = calls + bucket.calls, failed + bucket.failed
        gains.append(_gain(calls, failed, share) if bucket.calls else -1.0)
    gains.reverse()
    best = max(range(len(gains)), key=gains.__getitem__, default=None)
    if best is None or gains[best] <= 0:
        return None
    likely = [at for at, gain in enumerate(gains) if gain >= gains[best] - LIKELY]
    return Onset(best, likely[0], likely[-1], gains[best])


def _gain(calls: int, failed: int, share: float) -> float:
    if not calls or failed <= calls * share:
        return 0.0
    raised = min(failed / calls, HIGHEST)
    good = calls - failed
    return failed * log(raised / share) + good * log((1 - raised) / (1 - share))
