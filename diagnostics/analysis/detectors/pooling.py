"""Series that are watched together share their false alarms (Benjamini and Hochberg, 1995).

One of many series needs more evidence than one alone: somebody is always unlucky. When r of
them are suspicious at once, chance explains that less, and each needs log(r) less evidence.
"""

from collections.abc import Iterable, Sequence
from math import inf, log

from diagnostics.analysis.detectors.change_detector import ChangeDetector, Fire


def relief_of(margins: Iterable[float]) -> float:
    """Return how much less evidence each series needs now.

    A margin is the evidence that a series lacks for an alarm of its own. The largest r
    counts for which r series lack at most log(r).
    """
    found = 0.0
    for rank, margin in enumerate(sorted(margins), 1):
        if margin <= log(rank):
            found = log(rank)
    return found


class Pool:
    """Series of one project under the `change` detector, fed in the order of time."""

    def __init__(self, baselines: Sequence[float | None], series: int | None = None) -> None:
        """Begin without a past: a series for each baseline, None where it is not known.

        `series` share the budget of false fires, all of these unless told.
        """
        count = series or len(baselines)
        self._watches = [ChangeDetector(count, baseline) for baseline in baselines]
        self._most = log(max(len(baselines), 1))
        self._suspicious: dict[int, float] = {}
        self._fed: dict[int, float] = {}
        self._at = -inf
        self._relief = 0.0

    def feed(self, place: int, at: float, failed: int) -> Fire | None:
        """Take a call of one series; return its alarm when it fires or clears.

        Calls of one moment know nothing of each other, whatever their order.
        """
        if at > self._at:
            self._settle(at)
        watch = self._watches[place]
        watch.relief = self._relief
        found = watch.feed(at, 1, failed)
        self._fed[place] = watch.margin
        return found

    def _settle(self, at: float) -> None:
        for place, margin in self._fed.items():
            if margin <= self._most:
                self._suspicious[place] = margin
            else:
                self._suspicious.pop(place, None)
        self._fed.clear()
        known = self._suspicious
        self._relief = relief_of(known.values()) if len(known) > 1 else 0.0
        self._at = at
