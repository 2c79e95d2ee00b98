"""What a new slice of a `change` rule begins with: its last fourteen days, from rollups."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from diagnostics.alert_reading import LATE, MINUTE
from diagnostics.core.alerting.rules import Rule
from diagnostics.core.alerting.signals import Measured, measured
from diagnostics.core.alerting.slices import slice_key
from diagnostics.core.detectors.expectation import HISTORY_SECONDS
from diagnostics.core.detectors.watching import Watch
from diagnostics.core.rollups import SERIES
from diagnostics.core.windows import WIDTHS, Grain, Window, floor
from diagnostics.summing import Question, Slots, sum_rollups

MINUTES_BEFORE = timedelta(hours=6)
HISTORY = timedelta(seconds=HISTORY_SECONDS)
Key = tuple[int, UUID]
Curve = dict[Key, list[tuple[float, int, int]]]


class Cold(Protocol):
    """A slice that has no watch yet."""

    rule: Rule
    key: UUID


def warm_watches(
    project_id: int, slices: Sequence[Cold], slot: datetime, series: int
) -> Mapping[Key, Watch]:
    """Give each slice a watch that has seen its past until 15 minutes before the slot.

    Hours first, minutes for the last six hours: two queries for each signal.
    """
    wanted = {(one.rule.id, one.key) for one in slices}
    watches = {key: Watch(series) for key in wanted}
    rules = {one.rule.id: one.rule for one in slices}
    until = slot + MINUTE - LATE
    middle = floor(until - MINUTES_BEFORE, WIDTHS[Grain.HOUR])
    stretches = ((middle - HISTORY, middle, Grain.HOUR), (middle, until, Grain.MINUTE))
    for since, end, grain in stretches:
        for rule in rules.values():
            window = Window(floor(since, WIDTHS[grain]), end, grain)
            for key, curve in curves_of(project_id, rule, window).items():
                if key in wanted:
                    _feed(watches[key], curve)
    return watches


def curves_of(project_id: int, rule: Rule, window: Window) -> Curve:
    """Give what every slice of a rule counted in each stretch of a window.

    (seconds of the epoch at which the stretch begins, k, n), oldest first.
    """
    found = measured(rule.signal, rule.asked.limit)
    if found is None:
        return {}
    width = WIDTHS[window.finest]
    slots = Slots(window.since, width, (window.until - window.since) // width)
    asked = Question(window, SERIES, found.columns, rule.terms, slots)
    rows = sum_rollups(project_id, asked)
    return {
        (rule.id, key): curve
        for key, curve in _by_slice(rule, found, rows, window.since, width).items()
    }


def _by_slice(
    rule: Rule,
    found: Measured,
    rows: Iterable[Sequence[object]],
    since: datetime,
    width: timedelta,
) -> dict[UUID, list[tuple[float, int, int]]]:
    added: dict[UUID, dict[int, tuple[int, int]]] = defaultdict(dict)
    keys: dict[tuple[object, ...], UUID] = {}
    for row in rows:
        values, slot = tuple(row[: len(SERIES)]), row[len(SERIES)]
        key = keys.get(values)
        if key is None:
            named = dict(zip(SERIES, values, strict=True))
            key = slice_key({name: named[name] for name in rule.group_by})  # type: ignore[misc]
            keys[values] = key
        k, n = found.count(row[len(SERIES) + 1 :])  # type: ignore[arg-type] # numbers
        known_k, known_n = added[key].get(slot, (0, 0))  # type: ignore[call-overload]
        added[key][slot] = known_k + k, known_n + n  # type: ignore[index]
    begin, step = since.timestamp(), width.total_seconds()
    return {
        key: [(begin + slot * step, k, n) for slot, (k, n) in sorted(curve.items())]
        for key, curve in added.items()
    }


def _feed(watch: Watch, curve: Iterable[tuple[float, int, int]]) -> None:
    for at, k, n in curve:
        if n > 0:
            watch.feed(at, n, max(0, min(k, n)))
