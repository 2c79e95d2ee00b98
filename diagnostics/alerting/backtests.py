"""What a rule would have done: the same detectors and states over rollups of the past.

Hours for what is older than two days, ten minutes for what came since. While nothing fires
or waits, only those with a bad call are looked at.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from diagnostics.alerting.evaluation import NOTHING, DetectorEvaluation, judge, look_on
from diagnostics.alerting.priming import HISTORY, curves_of
from diagnostics.alerting.rule_rows import COLUMNS, check_rule
from diagnostics.alerting.rules import RuleDefinition, make_rule
from diagnostics.alerting.signals import Slice, Timeline, measured
from diagnostics.alerting.states import (
    AlertPhase,
    DetectorSignal,
    NoData,
    SliceStatus,
    StateChange,
    advance,
    time_of,
)
from diagnostics.analysis.detectors.change_detector import ChangeDetector
from diagnostics.store.windows import WIDTHS, Grain, TimeWindow, floor

DAYS = 30
MOST_DAYS = 90
MOST_SLICES = 500
MOST_FIRES = 1_000
FINE = timedelta(minutes=10)
FINE_REACH = timedelta(hours=46)
HOUR = WIDTHS[Grain.HOUR]
CALM = frozenset({AlertPhase.OK, AlertPhase.NO_DATA, AlertPhase.RESOLVED})
"""States that only a look that fires leads out of."""


class UntestableError(ValueError):
    """this signal leaves no counts behind: it cannot be tried on the past"""

    def __str__(self) -> str:
        """Say it."""
        return str(self.__doc__)


@dataclass(frozen=True, slots=True)
class BacktestStep:
    """One look of the past: at a time (seconds), and how the slice stood then."""

    at: float
    look: DetectorEvaluation
    standing: SliceStatus
    happened: StateChange | None


@dataclass(frozen=True, slots=True)
class WouldFire:
    """One alarm that would have been raised; `cleared` is None while it lasts."""

    slice: Slice
    at: datetime
    onset: datetime
    cleared: datetime | None
    k: int
    n: int


@dataclass(frozen=True, slots=True)
class BackTest:
    """What a rule would have done in a window; `grains` say how finely it was looked at."""

    since: datetime
    until: datetime
    fires: Sequence[WouldFire]
    slices: int
    looks: int
    grains: Mapping[str, datetime]


@dataclass(slots=True)
class SlicePast:
    """The past of one slice: (begin in seconds, k, n) by hours, then by ten minutes."""

    values: Slice
    hours: dict[float, tuple[int, int]] = field(default_factory=dict)
    fine: dict[float, tuple[int, int]] = field(default_factory=dict)

    @property
    def last(self) -> float:
        """When the last stretch with a call began."""
        return max(self.fine or self.hours, default=0.0)


class WatchedSlice:
    """The eye of `change`: a watch that is fed."""

    def __init__(self, series: int) -> None:
        """Begin without a past."""
        self._watch = ChangeDetector(series)

    @property
    def fires(self) -> bool:
        """Whether it fires now."""
        return self._watch.fire is not None

    def take(self, begin: float, _width: float, k: int, n: int) -> None:
        """Take what a stretch counted."""
        if n:
            self._watch.feed(begin, n, min(k, n))

    def look(self) -> DetectorEvaluation:
        """Say how it stands."""
        return look_on(self._watch, ())


class WindowedSlice:
    """The eye of the other detectors: windows that look back."""

    fires = False
    """Never without a look."""

    def __init__(self, rule: RuleDefinition) -> None:
        """Begin without a past."""
        self._rule, self._line, self._counted = rule, Timeline(), 0

    def take(self, begin: float, width: float, k: int, n: int) -> None:
        """Take what a stretch counted."""
        self._counted = n
        if k or n:
            self._line.add(begin + width, k, n)
        else:
            self._line.pass_to(begin + width)

    def look(self) -> DetectorEvaluation:
        """Say how it stands."""
        rule = self._rule
        window = self._line.within
        look = judge(rule.detector, rule.parameters, window, is_latency=rule.is_latency)
        return look if self._counted or look.n else NOTHING


def back_test(
    project_id: int, given: Mapping[str, Any], now: datetime, days: int = DAYS
) -> BackTest:
    """Say when a rule would have fired in the last days.

    Raises RuleError, or UntestableError for a signal that leaves no counts.
    """
    rule = read_rule(given)
    since, until = now - timedelta(days=min(days, MOST_DAYS)), now
    begin = since.timestamp()
    fires: list[WouldFire] = []
    looks = 0
    pasts = pasts_of(project_id, rule, since, until, now)
    for past in pasts.values():
        told = walk(rule, past, len(pasts), until, is_whole=False)
        steps = [step for step in told if step.at >= begin]
        looks += len(steps)
        fires += fires_of(past.values, steps)
    fires.sort(key=lambda fire: fire.at, reverse=True)
    grains = {"hour": since, "10 minutes": max(since, _fine_since(now))}
    return BackTest(since, until, fires[:MOST_FIRES], len(pasts), looks, grains)


def read_rule(given: Mapping[str, Any]) -> RuleDefinition:
    """Make a rule that is not kept; raises RuleError."""
    kept = check_rule({"name": "back-test", **given})
    row = {**kept, "id": 0, "version": 1}
    return make_rule({name: row[name] for name in COLUMNS})


def pasts_of(
    project_id: int, rule: RuleDefinition, since: datetime, until: datetime, now: datetime
) -> dict[UUID, SlicePast]:
    """Read the past of every slice; two queries. A watch has 14 days before `since` too."""
    if measured(rule.signal, rule.parameters.limit) is None:
        raise UntestableError
    begin = floor(since - (HISTORY if rule.detector == "change" else 6 * HOUR), HOUR)
    middle = min(max(begin, _fine_since(now)), floor(until, HOUR))
    pasts: dict[UUID, SlicePast] = {}
    stretches = (
        (TimeWindow(begin, middle, Grain.HOUR), HOUR),
        (TimeWindow(middle, floor(until, FINE) + FINE, Grain.MINUTE), FINE),
    )
    for window, width in stretches:
        if window.since >= window.until:
            continue
        curves = curves_of(project_id, rule, window, width)
        for (_, key), curve in curves.found.items():
            if key not in pasts and len(pasts) >= MOST_SLICES:
                continue
            past = pasts.setdefault(key, SlicePast(curves.slices[key]))
            kept = past.hours if width == HOUR else past.fine
            kept.update((at, (k, n)) for at, k, n in curve)
    return pasts


def walk(
    rule: RuleDefinition, past: SlicePast, series: int, until: datetime, *, is_whole: bool = True
) -> Iterator[BacktestStep]:
    """Look at every stretch of a slice's past, in order.

    Unless `is_whole`, stretches without a bad call are left out where nothing fires or
    waits: nothing begins there. The last one is always looked at.
    """
    eye = WatchedSlice(series) if rule.detector == "change" else WindowedSlice(rule)
    standing, last_data, end = SliceStatus(), 0.0, until.timestamp()
    last, patience = past.last, rule.patience
    is_silence_told = patience.no_data is NoData.FIRE
    for begin, width, (k, n) in _stretches(past):
        at = min(begin + width, end)
        eye.take(begin, width, k, n)
        last_data = at if n else last_data
        is_told = k or is_whole or begin == last or (is_silence_told and not n)
        if not (is_told or eye.fires or standing.state not in CALM):
            continue
        look = eye.look()
        if at - last_data >= patience.no_data_seconds:
            look = DetectorEvaluation(
                DetectorSignal.NO_DATA, look.k, look.n, look.value, look.bound
            )
        standing, happened = advance(at, standing, look.said, patience)
        yield BacktestStep(at, look, standing, happened)


def fires_of(values: Slice, steps: Iterable[BacktestStep]) -> list[WouldFire]:
    """Return the alarms of a walk, oldest first."""
    fires: list[WouldFire] = []
    for step in steps:
        at = time_of(step.at)
        if step.happened is StateChange.FIRED:
            onset = at if step.look.onset is None else time_of(step.look.onset)
            fires.append(WouldFire(values, at, onset, None, step.look.k, step.look.n))
        elif step.happened is StateChange.CLEARED and fires:
            last = fires.pop()
            fires.append(WouldFire(last.slice, last.at, last.onset, at, last.k, last.n))
    return fires


def _stretches(past: SlicePast) -> Iterator[tuple[float, float, tuple[int, int]]]:
    """Return every stretch from the first one with a call on; those without count 0."""
    for counts, width in ((past.hours, HOUR), (past.fine, FINE)):
        if not counts:
            continue
        step = width.total_seconds()
        at, last = min(counts), max(counts)
        while at <= last:
            yield at, step, counts.get(at, (0, 0))
            at += step


def _fine_since(now: datetime) -> datetime:
    return floor(now - FINE_REACH, HOUR)
