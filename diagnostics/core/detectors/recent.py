"""The last moments of a series: 30 minutes, and at least 50 calls."""

from collections import deque
from collections.abc import Iterable, Sequence

from diagnostics.core.detectors.judgement import Counts

RECENT_SECONDS = 1800
RECENT_CALLS = 50
Stretch = tuple[float, int, int]
"""When it ended, its calls and failures."""


class Recent:
    """Counts that forget what is no longer recent."""

    __slots__ = ("_calls", "_failed", "_stretches")

    def __init__(self, stretches: Iterable[Sequence[float]] = ()) -> None:
        """Begin with what was kept."""
        self._stretches = deque((at, int(n), int(k)) for at, n, k in stretches)
        self._calls = sum(n for _, n, _ in self._stretches)
        self._failed = sum(k for _, _, k in self._stretches)

    @property
    def stretches(self) -> list[Stretch]:
        """What is to be kept."""
        return list(self._stretches)

    @property
    def counts(self) -> Counts:
        """Give all recent calls."""
        return Counts(self._calls, self._failed)

    def add(self, at: float, calls: int, failed: int) -> None:
        """Add a stretch that ended at a time; what is older than recent goes."""
        stretches = self._stretches
        stretches.append((at, calls, failed))
        self._calls += calls
        self._failed += failed
        while (
            stretches[0][0] < at - RECENT_SECONDS and self._calls - stretches[0][1] >= RECENT_CALLS
        ):
            _, gone, gone_failed = stretches.popleft()
            self._calls -= gone
            self._failed -= gone_failed
