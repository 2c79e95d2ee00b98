"""Any detector over the calls of one series, as they came: for simulation and back-tests."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import merge
from math import inf

from diagnostics.analysis.detectors.change import MINUTE, ChangeDetector, Fire
from diagnostics.analysis.detectors.onset import Onset
from diagnostics.analysis.detectors.thresholds import (
    SHORT_CALLS,
    SHORT_SECONDS,
    Judgement,
    Parameters,
    WindowCounts,
    judge_count,
    judge_threshold,
    long_window,
)
from diagnostics.analysis.detectors.usual import ProjectPast, past_of

Call = tuple[float, int]
"""When a call ended, in seconds, and 1 if it failed."""
SERIES_OF_A_PROJECT = 48
"""That a project of usual size has."""
KNOWN_CALLS = 1_000.0
"""Calls that a baseline is taken for that is known beforehand."""


class Detector(StrEnum):
    """The detectors that calls alone can drive."""

    CHANGE = "change"
    THRESHOLD = "threshold"
    COUNT = "count"


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


class ProjectDetectors:
    """The `change` detectors of the series of one project, fed in the order of time."""

    def __init__(
        self, series: int, sharing: int | None = None, past: Callable[[], ProjectPast] | None = None
    ) -> None:
        """Begin without a past; `sharing` series share one false alarm a week, these if None.

        `past` tells what other series have in common; None: what these do.
        """
        self._at = self._past_at = -inf
        self._past = ProjectPast()
        self._detectors = [
            ChangeDetector(sharing or series, past or self.past) for _ in range(series)
        ]

    def __getitem__(self, place: int) -> ChangeDetector:
        return self._detectors[place]

    def past(self) -> ProjectPast:
        """Return what the series have in common, as it was when this moment began."""
        if self._past_at < self._at:
            self._past_at = self._at
            self._past = past_of(detector.learned for detector in self._detectors)
        return self._past

    def feed(
        self, place: int, at: float, calls: int, failed: int, seconds: float = MINUTE
    ) -> Fire | None:
        """Take calls of one series; return its alarm when it fires or clears."""
        self._at = at
        return self._detectors[place].feed(at, calls, failed, seconds)


def replay(
    detector: Detector,
    calls: Iterable[Call],
    limits: Parameters | None = None,
    *,
    series: int = SERIES_OF_A_PROJECT,
) -> list[Fire]:
    """Return the alarms that a detector would have raised, in order."""
    if detector is Detector.CHANGE:
        return replay_together([calls], sharing=series)[0]
    return _judged(detector, calls, limits or Parameters())


def replay_together(
    calls: Sequence[Iterable[Call]],
    baselines: Sequence[float | None] = (),
    sharing: int | None = None,
) -> list[list[Fire]]:
    """Return the alarms of `change` over the series of one project, each in order.

    A baseline is the usual share of failures, where it is known beforehand. `sharing` series
    share one false alarm a week, these unless told.
    """
    project = ProjectDetectors(len(calls), sharing)
    for place, baseline in enumerate(baselines):
        if baseline is not None:
            project[place].learned.failed = baseline * KNOWN_CALLS
            project[place].learned.calls = KNOWN_CALLS
    placed = ([(at, place, failed) for at, failed in each] for place, each in enumerate(calls))
    for at, place, failed in merge(*placed):
        project.feed(place, at, 1, failed, 0.0)
    return [project[place].fires for place in range(len(calls))]


def _judged(detector: Detector, calls: Iterable[Call], limits: Parameters) -> list[Fire]:
    tally, fires, is_on = CallLog(), list[Fire](), False
    for at, failed in calls:
        tally.add(at, failed)
        judgement, onset_seconds = _judge(detector, tally, limits)
        if not is_on and judgement.fires:
            since = tally.since(onset_seconds)
            fires.append(Fire(at, Onset(since, since, since)))
            is_on = True
        elif is_on and judgement.clears:
            fires[-1] = fires[-1]._replace(cleared=at)
            is_on = False
    return fires


def _judge(detector: Detector, tally: CallLog, limits: Parameters) -> tuple[Judgement, float]:
    if detector is Detector.COUNT:
        counts = tally.window(limits.seconds)
        return judge_count(int(limits.count), counts), limits.seconds
    long = long_window(tally.window)
    short = tally.window(SHORT_SECONDS, SHORT_CALLS)
    return judge_threshold(limits.limit, long, short), SHORT_SECONDS * 3
