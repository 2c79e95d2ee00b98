"""Runs, or calls, that ended in one stretch of time, and how many of them went wrong."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """Runs that ended in one stretch of time, and how many of them degraded."""

    runs: int
    degraded: int

    @property
    def share(self) -> float:
        """Degraded share, 0 when nothing ran."""
        return self.degraded / self.runs if self.runs else 0.0


def merged(buckets: Sequence[Bucket], together: int) -> list[Bucket]:
    """Add up neighbouring buckets, `together` at a time."""
    return [
        Bucket(
            sum(bucket.runs for bucket in buckets[place : place + together]),
            sum(bucket.degraded for bucket in buckets[place : place + together]),
        )
        for place in range(0, len(buckets), together)
    ]
