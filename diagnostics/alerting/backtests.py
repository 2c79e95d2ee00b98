"""What a rule would have done: the same detectors and states over rollups of the past.

Hours for what is older than two days, ten minutes for what came since. While nothing fires
or waits, only those with a bad call are looked at.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from diagnostics.alerting.evaluation import NOTHING, DetectorEvaluation, feed, judge, look_on
from diagnostics.alerting.past import HISTORY, HOUR, SlicePast, read_past
from diagnostics.alerting.rule_rows import COLUMNS, check_rule
from diagnostics.alerting.rules import RuleDefinition, make_rule
from diagnostics.alerting.saved_states import SavedState, SliceEvaluation
from diagnostics.alerting.signals import Slice, slice_key
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
from diagnostics.analysis.detectors.replay import CallLog
from diagnostics.store.windows import Grain, TimeWindow, floor

DAYS = 30
MOST_DAYS = 90
MOST_SLICES = 500
MOST_FIRES = 1_000
FINE = timedelta(minutes=10)
FINE_REACH = timedelta(hours=46)
CALM = frozenset({AlertPhase.OK, AlertPhase.NO_DATA, AlertPhase.RESOLVED})
"""States that only a look that fires leads out of."""


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


def back_test(
    project_id: int, given: Mapping[str, Any], now: datetime, days: int = DAYS
) -> BackTest:
    """Return when a rule would have fired in the last days.

    Raises RuleError, or UntestableError for a signal that leaves no counts.
    """
    rule = read_rule(given)
    since, until = now - timedelta(days=min(days, MOST_DAYS)), now
    fires: list[WouldFire] = []
    looks = 0
    pasts = pasts_of(project_id, rule, since, until, now)
    for past in pasts.values():
        walked = walk(rule, past, len(pasts), until, is_whole=False)
        steps = [step for step in walked if step.at >= since.timestamp()]
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
    rule: RuleDefinition, past: SlicePast, series: int, until: datetime, *, is_whole: bool = True
) -> Iterator[SliceEvaluation]:
    """Look at every stretch of a slice's past, in order; their row is not saved.

    Unless `is_whole`, stretches without a bad call are left out where nothing fires or
    waits: nothing begins there. The last one is always looked at.
    """
    watch, calls, patience = ChangeDetector(series), CallLog(), rule.patience
    row = SavedState(rule.id, slice_key(past.values), until, rule.version)
    standing, last_data, end, last = SliceStatus(), 0.0, until.timestamp(), past.last
    for begin, width, k, n in past.stretches():
        at = min(begin + width, end)
        if rule.detector == "change":
            feed(watch, begin, k, n)
        else:
            calls.add(begin + width, k, n)
        last_data = at if n else last_data
        is_silence_told = patience.no_data is NoData.FIRE and not n
        is_told = k or is_whole or begin == last or is_silence_told or watch.fire is not None
        if not is_told and standing.state in CALM:
            continue
        look = look_on(watch) if rule.detector == "change" else _judge(rule, calls, n)
        if at - last_data >= patience.no_data_seconds:
            look = replace(look, said=DetectorSignal.NO_DATA)
        standing, happened = advance(at, standing, look.said, patience)
        yield SliceEvaluation(rule, past.values, row, at, look, standing, happened)


def _judge(rule: RuleDefinition, calls: CallLog, n: int) -> DetectorEvaluation:
    # A stretch that ended when the window begins is not part of it.
    look = judge(
        rule.detector,
        rule.parameters,
        lambda seconds: calls.window(seconds - 1e-6),
        is_latency=rule.is_latency,
    )
    return look if n or look.n else NOTHING


def fires_of(values: Slice, steps: Iterable[SliceEvaluation]) -> list[WouldFire]:
    """Return the alarms of a walk, oldest first."""
    fires: list[WouldFire] = []
    for step in steps:
        at = time_of(step.at)
        if step.happened is StateChange.FIRED:
            fires.append(WouldFire(values, at, step.onset, None, step.look.k, step.look.n))
        elif step.happened is StateChange.CLEARED and fires:
            fires.append(replace(fires.pop(), cleared=at))
    return fires


def _fine_since(now: datetime) -> datetime:
    return floor(now - FINE_REACH, HOUR)
