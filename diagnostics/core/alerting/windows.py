"""Counts of one slice, looking back from one moment: how many in the last so many seconds."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from diagnostics.core.detectors.judgement import Counts
from diagnostics.core.detectors.threshold import SHORT_CALLS, SHORT_SECONDS, Window

EMPTY = Counts(0, 0)


class Lookback:
    """Counts of stretches that end now: `within` gives the shortest that is long enough.

    `seconds` are the lengths, shortest first; `k` and `n` what lies between one and the
    one before it.
    """

    __slots__ = ("_k", "_n", "_seconds")

    def __init__(self, seconds: Sequence[int], k: Iterable[int], n: Iterable[int]) -> None:
        """Add up from now on backwards."""
        self._seconds = seconds
        self._k, self._n = _running(k), _running(n)

    def within(self, seconds: float) -> Counts:
        """Count the last so many seconds; everything when that is longer than is known."""
        place = min(bisect_left(self._seconds, seconds), len(self._seconds) - 1)
        return Counts(self._n[place], self._k[place])


class Timeline:
    """Counts in order of time, to look back from any of its moments: for back-tests."""

    __slots__ = ("_at", "_k", "_n", "_now")

    def __init__(self) -> None:
        """Begin empty."""
        self._at: list[float] = []
        self._k, self._n = [0], [0]
        self._now = 0.0

    def add(self, at: float, k: int, n: int) -> None:
        """Add what a stretch counted that ended at a time, not before the last one."""
        self._at.append(at)
        self._k.append(self._k[-1] + k)
        self._n.append(self._n[-1] + n)
        self._now = at

    def pass_to(self, now: float) -> None:
        """Look back from this moment, though nothing was counted."""
        self._now = now

    def within(self, seconds: float) -> Counts:
        """Count the last so many seconds."""
        first = bisect_left(self._at, self._now - seconds + 1e-6)
        return Counts(self._n[-1] - self._n[first], self._k[-1] - self._k[first])


SHORT_WINDOWS = (
    SHORT_SECONDS,
    *(60 * minutes for minutes in (10, 15, 30, 60, 120, 360)),
)


def short_window(window: Window) -> Counts:
    """Give the last 5 minutes, or more where they have fewer than 10 calls."""
    counts = EMPTY
    for seconds in SHORT_WINDOWS:
        counts = window(seconds)
        if counts.calls >= SHORT_CALLS:
            break
    return counts


def _running(numbers: Iterable[int]) -> list[int]:
    total, found = 0, []
    for number in numbers:
        total += number
        found.append(total)
    return found
