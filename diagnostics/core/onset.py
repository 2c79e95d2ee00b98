"""Since when: the last zero of a cumulative sum over buckets of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

MEASURABLE_BASELINE = 0.01
"""A series without a single failure would make every failure infinitely surprising."""
ALARM = 4.0
"""A sum of log likelihood ratios below this is chance."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Runs that ended in one stretch of time, and how many of them degraded."""

    runs: int
    degraded: int

    @property
    def share(self) -> float:
        """Degraded share, 0 when nothing ran."""
        return self.degraded / self.runs if self.runs else 0.0


def onset(buckets: Sequence[Bucket], baseline: float | None) -> int | None:
    """Give the index of the bucket in which the degradation began, None without one.

    1. p0 is the baseline (1 % at least), p1 = max(3 p0, p0 + 10 points).
    2. The sum gains log(p1/p0) per failure, loses log((1-p0)/(1-p1)) per good run, and
       stays between 0 and twice the alarm (an incident must be able to end).
    3. The bucket after its last zero is the onset, if the sum is above the alarm.
    """
    expected = min(max(baseline or 0.0, MEASURABLE_BASELINE), 0.85)
    feared = min(max(3 * expected, expected + 0.10), 0.95)
    gain, loss = log(feared / expected), log((1 - feared) / (1 - expected))
    total, start = 0.0, 0
    for index, bucket in enumerate(buckets):
        if bucket.runs:
            step = bucket.degraded * gain + (bucket.runs - bucket.degraded) * loss
            total = min(max(total + step, 0.0), 2 * ALARM)
        if not total:
            start = index + 1
    return start if total >= ALARM else None


def merged(buckets: Sequence[Bucket], together: int) -> list[Bucket]:
    """Add up neighbouring buckets, `together` at a time."""
    return [
        Bucket(
            sum(bucket.runs for bucket in buckets[place : place + together]),
            sum(bucket.degraded for bucket in buckets[place : place + together]),
        )
        for place in range(0, len(buckets), together)
    ]
