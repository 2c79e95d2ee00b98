"""What a new slice of a `change` rule begins with: its last fourteen days, from rollups."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from diagnostics.alerting.counts import LATE, MINUTE
from diagnostics.alerting.rules import RuleDefinition
from diagnostics.alerting.signals import Count, Slice, measured, slice_key
from diagnostics.analysis.detectors.baseline import HISTORY_SECONDS
from diagnostics.analysis.detectors.change_detector import ChangeDetector
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.store.rollups import SERIES
from diagnostics.store.windows import WIDTHS, Grain, TimeWindow, floor

MINUTES_BEFORE = timedelta(hours=6)
HISTORY = timedelta(seconds=HISTORY_SECONDS)
PLACES = len(SERIES)
Key = tuple[int, UUID]


@dataclass(frozen=True, slots=True)
class Curves:
    """By rule and slice: (begin in seconds of the epoch, k, n); and what slices are."""

    found: Mapping[Key, Sequence[tuple[float, int, int]]]
    slices: Mapping[UUID, Slice]


class UnprimedSlice(Protocol):
    """A slice that has no watch yet."""

    rule: RuleDefinition
    key: UUID


def warm_watches(
    project_id: int, slices: Sequence[UnprimedSlice], slot: datetime, series: int
) -> Mapping[Key, ChangeDetector]:
    """Return a detector for each slice, primed until 15 minutes before the slot.

    Hours first, minutes for the last six hours: two queries for each signal.
    """
    wanted = {(one.rule.id, one.key) for one in slices}
    watches = {key: ChangeDetector(series) for key in wanted}
    rules = {one.rule.id: one.rule for one in slices}
    until = slot + MINUTE - LATE
    middle = floor(until - MINUTES_BEFORE, WIDTHS[Grain.HOUR])
    stretches = ((middle - HISTORY, middle, Grain.HOUR), (middle, until, Grain.MINUTE))
    for since, end, grain in stretches:
        for rule in rules.values():
            window = TimeWindow(floor(since, WIDTHS[grain]), end, grain)
            for key, curve in curves_of(project_id, rule, window).found.items():
                if key in wanted:
                    _feed(watches[key], curve)
    return watches


def curves_of(
    project_id: int, rule: RuleDefinition, window: TimeWindow, width: timedelta | None = None
) -> Curves:
    """Return what every slice of a rule counted in each stretch of a window, oldest first.

    A stretch is a minute or an hour, as the window's grain, unless `width` is told.
    """
    found = measured(rule.signal, rule.parameters.limit)
    if found is None:
        return Curves({}, {})
    step = width or WIDTHS[window.finest]
    slots = Slots(window.since, step, -(-(window.until - window.since) // step))
    asked = Question(window, SERIES, found.columns, rule.terms, slots)
    added: dict[Key, dict[int, Count]] = defaultdict(dict)
    slices: dict[UUID, Slice] = {}
    keys: dict[Row, UUID] = {}
    for row in sum_rollups(project_id, asked):
        values, slot, counts = row[:PLACES], row[PLACES], row[PLACES + 1 :]
        key = keys.get(values)
        if key is None:
            named = dict(zip(SERIES, values, strict=True))
            told = {name: named[name] for name in rule.group_by}
            key = keys[values] = slice_key(told)
            slices[key] = told
        k, n = found.count(counts)
        known_k, known_n = added[rule.id, key].get(slot, (0, 0))
        added[rule.id, key][slot] = known_k + k, known_n + n
    begin, seconds = window.since.timestamp(), step.total_seconds()
    curves = {
        key: [(begin + slot * seconds, k, n) for slot, (k, n) in sorted(by_slot.items())]
        for key, by_slot in added.items()
    }
    return Curves(curves, slices)


def _feed(watch: ChangeDetector, curve: Iterable[tuple[float, int, int]]) -> None:
    for at, k, n in curve:
        if n > 0:
            watch.feed(at, n, max(0, min(k, n)))
