"""How an alarm ends: the evidence that its calls are well again.

Calls that come in bursts (an hourly batch) may fail and go well in any order within one. So a
burst counts as a whole: all of its calls together, and nothing for a recovery before it has as
many as the burst before, or is over. Of steady traffic each minute is one by itself.
"""

from collections.abc import Sequence
from math import inf, log
from typing import NamedTuple

from diagnostics.analysis.detectors.alternative import MILD_EFFECT, raise_rate, recent
from diagnostics.analysis.detectors.onset import CountedStretch
from diagnostics.analysis.detectors.usual import Usual

DOUBTED = 3.0
"""The evidence for a recovery from which calls do not count for how bad it is."""
WORST, HEALED = 0.9, 0.7
LONG_PAUSE = 4.0
"""How many times as long as that between calls a pause is, for what follows to be a burst."""
BURST_PART, LONGEST_BURST = 1 / 2, 1800.0
"""A burst lasts for a part of the pause before it, and for so many seconds at most."""


class Burst(NamedTuple):
    """The calls of the latest burst since an onset; `is_whole`: it may be judged."""

    begin: float
    calls: int
    failed: int
    is_whole: bool


def latest_burst(stretches: Sequence[CountedStretch], since: float) -> Burst:
    """Return the latest burst of some stretches, with its calls since a moment."""
    groups: list[list[CountedStretch]] = []
    limit = -inf
    for place, stretch in enumerate(stretches):
        if stretch.at <= limit:
            groups[-1].append(stretch)
        else:
            groups.append([stretch])
            limit = stretch.at + _reach(stretches[:place], stretch.at)
    if not groups:
        return Burst(0.0, 0, 0, True)
    calls = [sum(stretch.calls for stretch in group) for group in groups[-2:]]
    recent = [stretch for stretch in groups[-1] if stretch.end > since]
    return Burst(
        groups[-1][0].at,
        sum(stretch.calls for stretch in recent),
        sum(stretch.failed for stretch in recent),
        calls[-1] >= calls[0] or stretches[-1].end > limit,
    )


def _reach(before: Sequence[CountedStretch], at: float) -> float:
    """Return for how long calls after a pause are one burst: 0 where it is a usual pause."""
    pause = at - before[-1].end if before else 0.0
    if pause <= 0:
        return 0.0
    since = before[-1].end - LONGEST_BURST
    near = (stretch.calls for stretch in reversed(before) if stretch.end > since)
    is_long = pause * sum(near) >= LONG_PAUSE * LONGEST_BURST
    return min(pause * BURST_PART, LONGEST_BURST) if is_long else 0.0


class Badness(NamedTuple):
    """How bad an alarm is: failures and calls since the onset, and of late; `calm` ends it."""

    failed: float = 0.0
    calls: float = 0.0
    late_failed: float = 0.0
    late: float = 0.0
    calm: float = 0.0

    def plus(self, calls: int, failed: int, usual: Usual) -> "Badness":
        """Return it with a burst: as usual is weighed against as bad as it was of late."""
        worse = raise_rate(usual.before)[MILD_EFFECT].rate
        rate = min(max((self.late_failed + 1) / (self.late + 2), worse), WORST)
        well = min(usual.before, rate * HEALED)
        gain = failed * log(well / rate) + (calls - failed) * log((1 - well) / (1 - rate))
        calm = max(self.calm + gain * usual.share, 0.0)
        if calm >= DOUBTED:
            return self._replace(calm=calm)
        late = recent(self.late_failed + failed, self.late + calls)
        return Badness(self.failed + failed, self.calls + calls, *late, calm)
