"""What a rule would have done: the same detectors and states over rollups of the past.

Hours for what is older than two days, ten minutes for what came since. While nothing fires
or waits, only those with a bad call are looked at.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, StrictInt

from diagnostics.alerting.past import HISTORY, HOUR, PastStretch, SlicePast, by_time, read_past
from diagnostics.alerting.rule_rows import check_rule
from diagnostics.alerting.rules import RuleDefinition, RuleFields
from diagnostics.alerting.saved_states import SavedState, SliceEvaluation
from diagnostics.alerting.signals import (
    NOTHING,
    DetectorEvaluation,
    Slice,
    describe,
    judge,
    slice_key,
)
from diagnostics.alerting.states import (
    AlertPhase,
    DetectorSignal,
    NoData,
    SliceStatus,
    StateChange,
    advance,
    time_of,
)
from diagnostics.analysis.detectors.change import ChangeDetector
from diagnostics.analysis.detectors.replay import CallLog, ProjectDetectors
from diagnostics.rest.resources import Resource
from diagnostics.store.windows import Grain, TimeWindow, floor

DAYS = 30
MOST_DAYS = 90
MOST_SLICES = 500
MOST_FIRES = 1_000
FINE = timedelta(minutes=10)
FINE_REACH = timedelta(hours=46)
CALM = frozenset({AlertPhase.OK, AlertPhase.NO_DATA, AlertPhase.RESOLVED})
"""States that only an evaluation that fires leads out of."""


class WouldFire(Resource):
    """One alarm that would have been raised; `cleared` is null while it lasts."""

    slice: dict[str, str | None]
    at: datetime
    onset: datetime
    cleared: datetime | None
    k: int
    n: int


class BackTest(Resource):
    """When a rule would have fired; `grains` says from when on it was looked at how finely.

    `mostly_firing` are the slices for which it would have fired most of the time.
    """

    since: datetime
    until: datetime
    slices: int
    looks: int
    grains: dict[str, datetime]
    fires: list[WouldFire]
    mostly_firing: list[dict[str, str | None]]


class TriedRule(RuleFields):
    name: str = "back-test"
    days: Annotated[StrictInt, Field(ge=1, le=MOST_DAYS)] = DAYS


def back_test(
    project_id: int, fields: Mapping[str, Any], now: datetime, days: int = DAYS
) -> BackTest:
    """Return when a rule would have fired in the last days.

    Raises RuleError, or UntestableError for a signal that leaves no counts.
    """
    rule = read_rule(fields)
    since, until = now - timedelta(days=days), now
    fires: list[WouldFire] = []
    mostly: list[dict[str, str | None]] = []
    looks = 0
    pasts = pasts_of(project_id, rule, since, until, now)
    walked = walk(rule, list(pasts.values()), until, is_whole=False)
    for past, all_steps in zip(pasts.values(), walked, strict=True):
        steps = [step for step in all_steps if step.at >= since.timestamp()]
        looks += len(steps)
        found = fires_of(past.values, steps)
        lasted = sum(((fire.cleared or until) - fire.at for fire in found), timedelta())
        # Alarms that last longer than what is between them: nobody would read them.
        if lasted > (until - max(since, time_of(past.first))) / 2:
            mostly.append(dict(past.values))
        fires += found
    fires.sort(key=lambda fire: fire.at, reverse=True)
    grains = {"hour": since, "10 minutes": max(since, _fine_since(now))}
    return BackTest(
        since=since,
        until=until,
        slices=len(pasts),
        looks=looks,
        grains=grains,
        fires=fires[:MOST_FIRES],
        mostly_firing=mostly,
    )


def read_rule(fields: Mapping[str, Any]) -> RuleDefinition:
    """Make a rule that is not kept; raises RuleError."""
    return RuleDefinition(id=0, version=1, **check_rule({"name": "back-test", **fields}))


def pasts_of(
    project_id: int, rule: RuleDefinition, since: datetime, until: datetime, now: datetime
) -> Mapping[UUID, SlicePast]:
    """Return the past of every slice; two queries. A watch has 14 days before `since` too."""
    begin = floor(since - (HISTORY if rule.detector == "change" else 6 * HOUR), HOUR)
    middle = min(max(begin, _fine_since(now)), floor(until, HOUR))
    windows = (
        (TimeWindow(begin, middle, Grain.HOUR), HOUR),
        (TimeWindow(middle, floor(until, FINE) + FINE, Grain.MINUTE), FINE),
    )
    return dict(islice(read_past(project_id, rule, windows).items(), MOST_SLICES))


def walk(
    rule: RuleDefinition, pasts: Sequence[SlicePast], until: datetime, *, is_whole: bool = True
) -> list[list[SliceEvaluation]]:
    """Look at every stretch of the past of each slice, in order; their rows are not saved.

    Unless `is_whole`, stretches without a bad call are left out where nothing fires or
    waits: nothing begins there. The last one is always looked at.
    """
    project = ProjectDetectors(len(pasts))
    walks = [_SliceReplay(rule, past, until.timestamp(), is_whole) for past in pasts]
    steps: list[list[SliceEvaluation]] = [[] for _ in pasts]
    for place, stretch in by_time(pasts):
        if rule.detector == "change":
            project.feed(place, stretch.at, stretch.n, stretch.k, stretch.width)
        step = walks[place].step(stretch, project[place])
        if step is not None:
            steps[place].append(step)
    return steps


class _SliceReplay:
    def __init__(self, rule: RuleDefinition, past: SlicePast, end: float, is_whole: bool) -> None:
        self._rule, self._past, self._end, self._is_whole = rule, past, end, is_whole
        self._row = SavedState(rule.id, slice_key(past.values), time_of(end), rule.version)
        self._calls, self._standing, self._last_data = CallLog(), SliceStatus(), 0.0

    def step(self, stretch: PastStretch, detector: ChangeDetector) -> SliceEvaluation | None:
        """Look at the slice as a stretch ends, if anything may happen there."""
        (begin, width, k, n), rule = stretch, self._rule
        at, is_change = min(begin + width, self._end), rule.detector == "change"
        if not is_change:
            self._calls.add(begin + width, k, n)
        self._last_data = at if n else self._last_data
        is_silence_told = rule.no_data is NoData.FIRE and not n
        is_told = k or self._is_whole or begin == self._past.last or is_silence_told
        is_on = detector.fire is not None or self._standing.state not in CALM
        if not (is_told or is_on):
            return None
        result = describe(detector) if is_change else _judge(rule, self._calls, n)
        if at - self._last_data >= rule.no_data_seconds:
            result = replace(result, said=DetectorSignal.NO_DATA)
        self._standing, happened = advance(at, self._standing, result.said, rule)
        return SliceEvaluation(
            rule, self._past.values, self._row, at, result, self._standing, happened
        )


def _judge(rule: RuleDefinition, calls: CallLog, n: int) -> DetectorEvaluation:
    # A stretch that ended when the window begins is not part of it.
    result = judge(
        rule.detector,
        rule.limits,
        lambda seconds: calls.window(seconds - 1e-6),
        is_latency=rule.is_latency,
    )
    return result if n or result.n else NOTHING


def fires_of(values: Slice, steps: Iterable[SliceEvaluation]) -> list[WouldFire]:
    fires: list[WouldFire] = []
    for step in steps:
        at = time_of(step.at)
        if step.happened is StateChange.FIRED:
            counts = {"k": step.result.k, "n": step.result.n}
            fires.append(
                WouldFire(slice=dict(values), at=at, onset=step.onset, cleared=None, **counts)
            )
        elif step.happened is StateChange.CLEARED and fires:
            fires.append(fires.pop().model_copy(update={"cleared": at}))
    return fires


def _fine_since(now: datetime) -> datetime:
    return floor(now - FINE_REACH, HOUR)
