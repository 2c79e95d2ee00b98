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


def is_hot(bucket: Bucket, baseline: float | None) -> bool:
    """Ask whether a bucket stands out: two failures at least, and well above the baseline."""
    if bucket.degraded < 2:
        return False
    expected = baseline or 0.0
    return bucket.share > max(2 * expected, expected + 0.05)


def onset(buckets: Sequence[Bucket], baseline: float | None) -> int | None:
    """Give the index of the bucket in which the degradation began, or None when there is none now.

    1. p0 is the baseline (1 % at least), p1 = max(3 p0, p0 + 10 points).
    2. The sum gains log(p1/p0) per failure, loses log((1-p0)/(1-p1)) per good run, never falls below 0
       and never rises above twice the alarm (an incident that is over must be able to end).
    3. The bucket after its last zero is the onset, if the sum stands above the alarm.
    """
    expected = min(max(baseline or 0.0, MEASURABLE_BASELINE), 0.85)
    feared = min(max(3 * expected, expected + 0.10), 0.95)
    gain, loss = log(feared / expected), log((1 - feared) / (1 - expected))
    total, start = 0.0, 0
    for index, bucket in enumerate(buckets):
        step = bucket.degraded * gain + (bucket.runs - bucket.degraded) * loss
        total = min(max(total + step, 0.0), 2 * ALARM)
        if not total:
            start = index + 1
    return start if total >= ALARM else None
