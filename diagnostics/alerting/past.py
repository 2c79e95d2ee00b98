"""The past of slices, read from rollups: to prime detectors, to try rules and to fill in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

from diagnostics.alerting.counts import MINUTE, MINUTES_REACH
from diagnostics.alerting.evaluation import feed
from diagnostics.alerting.raw_counts import EventsAsked, EventsUncountableError, count_events
from diagnostics.alerting.rules import RuleDefinition
from diagnostics.alerting.saved_states import Key
from diagnostics.alerting.signals import Count, Slice, slice_key
from diagnostics.analysis.detectors.baseline import HISTORY_SECONDS
from diagnostics.analysis.detectors.change_detector import ChangeDetector
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.store.rollups import SERIES
from diagnostics.store.windows import LATE, WIDTHS, Grain, TimeWindow, floor

HISTORY = timedelta(seconds=HISTORY_SECONDS)
HOUR = WIDTHS[Grain.HOUR]
PLACES = len(SERIES)


EVENTS_SECONDS = 4.0
TOO_MANY = "the last two days have too many events to count them by prompt version"


class UntestableError(ValueError):
    """A rule cannot be tried on the past; the message says why."""


@dataclass(slots=True)
class SlicePast:
    """What a slice counted: by widths (seconds), wide ones first, then by begins."""

    values: Slice
    counts: dict[float, dict[float, Count]] = field(default_factory=dict)

    @property
    def first(self) -> float:
        """When the first stretch with a call began."""
        return min(next(iter(self.counts.values())))

    @property
    def last(self) -> float:
        """When the last stretch with a call began."""
        return max(list(self.counts.values())[-1])

    def stretches(self) -> Iterator[tuple[float, float, int, int]]:
        """Return begin, width, k and n of all stretches in order, also of those without a call."""
        for width, counts in self.counts.items():
            at, last = min(counts), max(counts)
            while at <= last:
                yield at, width, *counts.get(at, (0, 0))
                at += width


def read_past(
    project_id: int, rule: RuleDefinition, windows: Iterable[tuple[TimeWindow, timedelta]]
) -> dict[UUID, SlicePast]:
    """Return the past of every slice of a rule in windows that are cut into these widths.

    A query a window. UntestableError for a signal that leaves no counts.
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
        for row in _read(project_id, rule, counted.columns, window, width):
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
) -> Iterable[Row]:
    """Return rows of series, the number of the stretch, and counts."""
    number = -(-(window.until - window.since) // width)
    if not rule.is_by_version or window.finest is not Grain.MINUTE:
        slots = Slots(window.since, width, number)
        return sum_rollups(project_id, Question(window, SERIES, columns, rule.terms, slots))
    bounds = [window.since + place * width for place in range(1, number)]
    asked = EventsAsked(window.since, window.until, bounds, columns, rule.terms)
    try:
        return count_events(project_id, asked, monotonic() + EVENTS_SECONDS)
    except EventsUncountableError as error:
        raise UntestableError(TOO_MANY) from error


def prime(
    project_id: int, slices: Mapping[Key, RuleDefinition], slot: datetime, series: int
) -> Mapping[Key, ChangeDetector]:
    """Return a detector for each slice, fed with its 14 days until 15 minutes before the slot.

    Hours first, minutes for the last six hours: two queries a rule.
    """
    until = slot + MINUTE - LATE
    middle = floor(until - MINUTES_REACH, HOUR)
    windows = (
        (TimeWindow(middle - HISTORY, middle, Grain.HOUR), HOUR),
        (TimeWindow(middle, until, Grain.MINUTE), MINUTE),
    )
    watches = {key: ChangeDetector(series) for key in slices}
    for rule in {rule.id: rule for rule in slices.values()}.values():
        for key, past in read_past(project_id, rule, windows).items():
            if (rule.id, key) in watches:
                for at, _, k, n in past.stretches():
                    feed(watches[rule.id, key], at, k, n)
    return watches
