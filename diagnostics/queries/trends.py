"""Queries of the Now page beside the series: curves and latest ends."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from diagnostics import clock
from diagnostics.analysis.series import SeriesKey
from diagnostics.queries.events import BASELINE_COUNTED
from diagnostics.queries.sums import Question, Slots, sum_rollups
from diagnostics.selection.conditions import Days, narrow
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection
from diagnostics.store.kept_answers import ResultCache
from diagnostics.store.models import Event
from diagnostics.store.rollups import SERIES, VERSION
from diagnostics.store.windows import MINUTES_KEPT, WIDTHS, Grain, RunBucket, align_to


@dataclass(frozen=True, slots=True)
class Counting:
    measures: Sequence[str]
    read: Callable[[Sequence[int]], RunBucket]


RUNS = Counting(BASELINE_COUNTED, lambda measures: RunBucket(*measures))


def trends(
    project_id: int,
    since: datetime,
    until: datetime,
    buckets: int,
    terms: Sequence[Term] = (),
    counting: Counting = RUNS,
    series: Sequence[int] | None = None,
) -> Mapping[SeriesKey, list[RunBucket]]:
    """Return the runs of every series in equal buckets between two times, oldest first.

    Buckets are exact to the minute while minutes are kept (48 hours), else to the hour; also to
    the hour with a term on a version. Buckets of whole days are read from days.
    """
    width = (until - since) / buckets
    by_version = any(term.field in VERSION for term in terms)
    grain = _grain_of(since, width)
    if by_version and grain is Grain.MINUTE:
        grain = Grain.HOUR
    slots = Slots(since, width, buckets)
    window = align_to(grain, since, until)
    question = Question(window, SERIES, counting.measures, terms, slots, series)
    curves: dict[SeriesKey, list[RunBucket]] = defaultdict(lambda: [RunBucket(0, 0)] * buckets)
    for row in sum_rollups(project_id, question):
        key, slot = SeriesKey(*row[: len(SERIES)]), row[len(SERIES)]
        curves[key][slot] = counting.read(row[len(SERIES) + 1 :])
    return curves


_curves: ResultCache[Mapping[SeriesKey, list[RunBucket]]] = ResultCache()


def recent_trends(
    project_id: int,
    since: datetime,
    until: datetime,
    buckets: int,
    terms: Sequence[Term],
    now: datetime,
    counting: Counting = RUNS,
    series: Sequence[int] | None = None,
) -> Mapping[SeriesKey, list[RunBucket]]:
    """Return recent curves, as old as the verdict shown beside them."""
    narrowed = None if series is None else tuple(series)
    return _curves.get(
        (project_id, since, until, buckets, tuple(terms), tuple(counting.measures), narrowed),
        now,
        lambda _: trends(project_id, since, until, buckets, terms, counting, series),
    ).answer


def _grain_of(since: datetime, width: timedelta) -> Grain:
    """Return the widest grain that fits into a bucket and is still kept."""
    if width >= WIDTHS[Grain.DAY]:
        return Grain.DAY
    is_kept = since >= clock.now() - MINUTES_KEPT
    return Grain.MINUTE if width < WIDTHS[Grain.HOUR] and is_kept else Grain.HOUR


def latest_degraded(
    project_id: int, selection: Selection, until: datetime, limit: int
) -> list[Event]:
    """Return the latest runs that ended degraded, newest first."""
    since, latest = selection.since(until), list[Event]()
    # The newest day mostly has enough, and planning to read ninety costs more than reading it.
    for begin in dict.fromkeys((max(since, until - WIDTHS[Grain.DAY]), since)):
        events = Event.objects.filter(
            project_id=project_id, kind="degraded", occurred_at__gte=begin, occurred_at__lt=until
        )
        events = narrow(events, selection, Days(begin, until))
        latest = list(events.order_by("-occurred_at", "-event_id")[:limit])
        if len(latest) == limit:
            break
    return latest
