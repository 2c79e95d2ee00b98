"""Any detector over the calls of one series, as they came: for simulation and back-tests."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import merge
from math import inf, log

from diagnostics.analysis.detectors.change import SERIES_OF_A_PROJECT, relief_of
from diagnostics.analysis.detectors.change_detector import ChangeDetector, Fire
from diagnostics.analysis.detectors.results import Judgement, WindowCounts
from diagnostics.analysis.detectors.thresholds import (
    PACES,
    SHORT_CALLS,
    SHORT_SECONDS,
    Parameters,
    judge_budget,
    judge_count,
    judge_threshold,
    long_window,
)

Call = tuple[float, int]
"""When a call ended, in seconds, and 1 if it failed."""


class Detector(StrEnum):
    """The detectors that calls alone can drive."""

    CHANGE = "change"
    THRESHOLD = "threshold"
    COUNT = "count"
    BURN = "burn"


@dataclass(slots=True)
class CallLog:
    """Calls in the order of their time, so that any window can be counted."""

    _times: list[float] = field(default_factory=list)
    _calls: list[int] = field(default_factory=lambda: [0])
    _failed: list[int] = field(default_factory=lambda: [0])

    def add(self, at: float, failed: int, calls: int = 1) -> None:
        """Add the next call, or what a stretch counted that ended then."""
        self._times.append(at)
        self._calls.append(self._calls[-1] + calls)
        self._failed.append(self._failed[-1] + failed)

    def window(self, seconds: float, least_calls: int = 0) -> WindowCounts:
        """Count the last so many seconds, and at least so many calls."""
        calls, failed = self._calls, self._failed
        first = bisect_left(self._times, self._times[-1] - seconds)
        if least_calls:
            first = min(first, max(0, bisect_right(calls, calls[-1] - least_calls) - 1))
        return WindowCounts(calls[-1] - calls[first], failed[-1] - failed[first])

    def since(self, seconds: float) -> float:
        """Return the time of the first failure in the last so many seconds."""
        now = self._times[-1]
        first = bisect_left(self._times, now - seconds)
        failure = bisect_right(self._failed, self._failed[first]) - 1
        return self._times[min(failure, len(self._times) - 1)]


def replay(
    detector: Detector,
    calls: Iterable[Call],
    limits: Parameters | None = None,
    *,
    series: int = SERIES_OF_A_PROJECT,
    baseline: float | None = None,
) -> list[Fire]:
    """Return the alarms that a detector would have raised, in order."""
    if detector is Detector.CHANGE:
        return replay_together([calls], [baseline], series)[0]
    fires: list[Fire] = []
    for fire in _judged(detector, calls, limits or Parameters()):
        _note(fires, fire)
    return fires


def replay_together(
    calls: Sequence[Iterable[Call]], baselines: Sequence[float | None], series: int | None = None
) -> list[list[Fire]]:
    """Return the alarms of `change` over the series of one project, which share its budget.

    `series` is how many share it, these unless told. Each series' calls are in order.
    """
    if len(calls) == 1:
        return [_alone(calls[0], ChangeDetector(series or 1, baselines[0]))]
    pool = Pool(baselines, series)
    fires: list[list[Fire]] = [[] for _ in calls]
    told = [_placed(place, one) for place, one in enumerate(calls)]
    for at, place, failed in merge(*told):
        fire = pool.feed(place, at, failed)
        if fire is not None:
            _note(fires[place], fire)
    return fires


class Pool:
    """Series of one project under the `change` detector, fed in the order of time.

    They share their false alarms: see `relief_of`.
    """

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

    def feed(self, place: int, at: float, failed: int, calls: int = 1) -> Fire | None:
        """Take calls of one series; return its alarm when it fires or clears.

        Calls of one moment know nothing of each other, whatever their order.
        """
        if at > self._at:
            self._settle(at)
        watch = self._watches[place]
        watch.relief = self._relief
        found = watch.feed(at, calls, failed)
        self._fed[place] = watch.margin
        return found

    def _settle(self, at: float) -> None:
        for place, margin in self._fed.items():
            if margin <= self._most:
                self._suspicious[place] = margin
            else:
                self._suspicious.pop(place, None)
        self._fed.clear()
        known = [margin for place, margin in self._suspicious.items() if self._counts(place, at)]
        self._relief = relief_of(known) if len(known) > 1 else 0.0
        self._at = at

    def _counts(self, place: int, at: float) -> bool:
        fire = self._watches[place].fire
        return fire is None or fire.is_news(at)


def _alone(calls: Iterable[Call], watch: ChangeDetector) -> list[Fire]:
    fires: list[Fire] = []
    for at, failed in calls:
        fire = watch.feed(at, 1, failed)
        if fire is not None:
            _note(fires, fire)
    return fires


def _placed(place: int, calls: Iterable[Call]) -> Iterator[tuple[float, int, int]]:
    for at, failed in calls:
        yield at, place, failed


def _note(fires: list[Fire], fire: Fire) -> None:
    """Add an alarm; one that clears takes the place of itself."""
    if fire.cleared is not None:
        fires.pop()
    fires.append(fire)


def _judged(detector: Detector, calls: Iterable[Call], limits: Parameters) -> Iterator[Fire]:
    tally = CallLog()
    firing: Fire | None = None
    for at, failed in calls:
        tally.add(at, failed)
        judgement, onset_seconds = _judge(detector, tally, limits)
        if firing is None and judgement.fires:
            firing = Fire(at, tally.since(onset_seconds))
            yield firing
        elif firing is not None and judgement.clears:
            yield Fire(firing.at, firing.onset, at)
            firing = None


def _judge(detector: Detector, tally: CallLog, limits: Parameters) -> tuple[Judgement, float]:
    if detector is Detector.COUNT:
        counts = tally.window(limits.seconds)
        return judge_count(int(limits.count), counts), limits.seconds
    if detector is Detector.BURN:
        return judge_budget(limits.budget, tally.window), PACES[0].long_seconds
    long = long_window(tally.window)
    short = tally.window(SHORT_SECONDS, SHORT_CALLS)
    return judge_threshold(limits.limit, long, short), SHORT_SECONDS * 3
