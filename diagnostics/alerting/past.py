"""The past of slices, read from rollups: to prime detectors, to try rules and to fill in."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import merge
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from diagnostics.alerting.counts import (
    MINUTE,
    MINUTES_REACH,
    EventsAsked,
    EventsUncountableError,
    count_events,
)
from diagnostics.alerting.rules import RuleDefinition
from diagnostics.alerting.saved_states import Key, SliceEvaluation
from diagnostics.alerting.signals import Count, Slice, slice_key
from diagnostics.analysis.detectors.change import ChangeDetector
from diagnostics.analysis.detectors.replay import ProjectDetectors
from diagnostics.analysis.detectors.usual import ProjectPast
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.store.rollups import SERIES
from diagnostics.store.windows import LATE, WIDTHS, Grain, TimeWindow, floor

HISTORY = timedelta(days=14)
HOUR = WIDTHS[Grain.HOUR]
PLACES = len(SERIES)
EVENTS_SECONDS = 4.0
TOO_MANY = "the last two days have too many events to count them by prompt version"


class UntestableError(ValueError):
    """A rule cannot be tried on the past; the message says why."""


class PastStretch(NamedTuple):
    """When a stretch began, how wide it is (seconds), and its bad ones of all."""

    at: float
    width: float
    k: int
    n: int


@dataclass(slots=True)
class SlicePast:
    """What a slice counted: by widths (seconds), wide ones first, then by begins."""

    values: Slice
    counts: dict[float, dict[float, Count]] = field(default_factory=dict)

    @property
    def first(self) -> float:
        return min(next(iter(self.counts.values())))

    @property
    def last(self) -> float:
        return max(list(self.counts.values())[-1])

    def stretches(self) -> Iterator[PastStretch]:
        """Return all stretches in order, also those without a call."""
        for width, counts in self.counts.items():
            at, last = min(counts), max(counts)
            while at <= last:
                yield PastStretch(at, width, *counts.get(at, (0, 0)))
                at += width


def read_past(
    project_id: int,
    rule: RuleDefinition,
    windows: Iterable[tuple[TimeWindow, timedelta]],
    ids: Sequence[int] | None = None,
) -> dict[UUID, SlicePast]:
    """Return the past of every slice of a rule in windows that are cut into these widths.

    A query a window, of these series (None: all). UntestableError for a signal that leaves no
    counts.
    """
    counted = rule.measured
    if counted is None:
        raise UntestableError("this signal has no stored counts, so it cannot be back-tested")
    pasts: dict[UUID, SlicePast] = {}
    by_series: dict[Row, SlicePast] = {}
    for window, width in windows:
        if window.since >= window.until:
            continue
        begin, seconds = window.since.timestamp(), width.total_seconds()
        for row in _read(project_id, rule, counted.columns, window, width, ids):
            series = row[:PLACES]
            if series not in by_series:
                named = dict(zip(SERIES, series, strict=True))
                values = {name: named[name] for name in rule.group_by}
                by_series[series] = pasts.setdefault(slice_key(values), SlicePast(values))
            counts = by_series[series].counts.setdefault(seconds, {})
            at = begin + row[PLACES] * seconds
            k, n = counted.count(row[PLACES + 1 :])
            known_k, known_n = counts.get(at, (0, 0))
            counts[at] = known_k + k, known_n + n
    return pasts


def _read(
    project_id: int,
    rule: RuleDefinition,
    columns: Sequence[str],
    window: TimeWindow,
    width: timedelta,
    ids: Sequence[int] | None,
) -> Iterable[Row]:
    """Return rows of series, the number of the stretch, and counts."""
    number = -(-(window.until - window.since) // width)
    if not rule.is_by_version or window.finest is not Grain.MINUTE:
        slots = Slots(window.since, width, number)
        question = Question(window, SERIES, columns, rule.terms, slots, ids)
        return sum_rollups(project_id, question)
    bounds = [window.since + place * width for place in range(1, number)]
    asked = EventsAsked(window.since, window.until, bounds, columns, rule.terms)
    try:
        return count_events(project_id, asked, monotonic() + EVENTS_SECONDS)
    except EventsUncountableError as error:
        raise UntestableError(TOO_MANY) from error


def by_time(pasts: Sequence[SlicePast]) -> Iterator[tuple[int, PastStretch]]:
    """Return the stretches of all slices of a rule in the order of time, each with its place."""

    def placed(place: int) -> Iterator[tuple[float, int, PastStretch]]:
        for stretch in pasts[place].stretches():
            yield stretch.at, place, stretch

    for _, place, stretch in merge(*map(placed, range(len(pasts)))):
        yield place, stretch


def prime(
    project_id: int,
    slices: Mapping[Key, SliceEvaluation],
    slot: datetime,
    sharing: int,
    pasts: Mapping[int, Callable[[], ProjectPast] | None],
) -> dict[Key, ChangeDetector]:
    """Return a detector for each slice, fed with its 14 days until 15 minutes before the slot.

    Hours first, minutes for the last six hours: two queries a rule. `sharing` slices share one
    false alarm; `pasts` tell by rule what others have in common, where they are known.
    """
    until = slot + MINUTE - LATE
    windows = past_windows(floor(until - MINUTES_REACH, HOUR), until)
    primed: dict[Key, ChangeDetector] = {}
    for rule in {evaluation.rule.id: evaluation.rule for evaluation in slices.values()}.values():
        own = {key: row for (rule_id, key), row in slices.items() if rule_id == rule.id}
        series = [series_id for evaluation in own.values() for series_id in evaluation.series]
        past = pasts.get(rule.id)
        replayed = replay_past(read_past(project_id, rule, windows, series), sharing, past)
        for key in own:
            new = ChangeDetector(sharing, past or ProjectPast)
            primed[rule.id, key] = replayed.get(key, new)
    return primed


def past_windows(middle: datetime, until: datetime) -> Sequence[tuple[TimeWindow, timedelta]]:
    return (
        (TimeWindow(middle - HISTORY, middle, Grain.HOUR), HOUR),
        (TimeWindow(middle, until, Grain.MINUTE), MINUTE),
    )


def replay_past(
    pasts: Mapping[UUID, SlicePast], sharing: int, past: Callable[[], ProjectPast] | None = None
) -> dict[UUID, ChangeDetector]:
    project = ProjectDetectors(len(pasts), sharing, past)
    for place, (at, width, k, n) in by_time(list(pasts.values())):
        project.feed(place, at, n, k, width)
    return {key: project[place] for place, key in enumerate(pasts)}
