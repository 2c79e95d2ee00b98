"""Queries of series: counts of a window, what of a range is counted, curves, and the latest events.

The number of series has no bound, and what a judgement costs grows with it: of a large project
those with the most calls are judged, and those with the most failures.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest
from operator import itemgetter

from diagnostics import clock
from diagnostics.analysis.series import RunCounts, SeriesKey
from diagnostics.queries.call_counts import FAILED, TRIED, first_attempts
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.selection.conditions import Days, narrow, term_params, write_narrowing, write_terms
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection
from diagnostics.store.kept_answers import ResultCache
from diagnostics.store.models import Event, Series
from diagnostics.store.rollups import FAILURE_KINDS, SERIES, UNCHECKED, VERSION
from diagnostics.store.sql import fetch
from diagnostics.store.windows import (
    MINUTES_KEPT,
    WIDTHS,
    Grain,
    RunBucket,
    TimeWindow,
    align,
    align_to,
    floor,
    kept_of,
)
from failsoft.events import EventKind

BASELINE_SPAN = timedelta(days=7)
SLOT_WIDTHS = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880, 10080, 20160)
)
BASELINE_COUNTED = ("runs", "degraded")
COUNTED = (
    *(*BASELINE_COUNTED, "ok_first", "repaired"),
    *("retry_input_tokens", "retry_output_tokens", "retry_ms"),
    *("ok_altered", "attempts", "cancelled", *UNCHECKED, *TRIED, *FAILED),
)


def counts_by_series(
    project_id: int,
    window: TimeWindow,
    terms: Sequence[Term] = (),
    series: Sequence[int] | None = None,
) -> dict[SeriesKey, RunCounts]:
    """Return the counts of every series that ended a run in the window, or was called.

    A term of None matches null.
    """
    question = Question(window, SERIES, COUNTED, terms, series=series)
    return read_series(sum_rollups(project_id, question))


def read_series(rows: Iterable[Row]) -> dict[SeriesKey, RunCounts]:
    """Read rows of a series and sums of `COUNTED`, of what ended a run or was called."""
    by_series = {
        SeriesKey(environment, node or "", provider, model): read_counts(counted)
        for environment, node, provider, model, *counted in rows
    }
    return {key: row for key, row in by_series.items() if row.runs or row.calls or row.cancelled}


def window_of(selection: Selection, now: datetime) -> TimeWindow:
    """Return what rollups count of a selection's range."""
    return window_for(*selection.window(now), selection.rollup_terms, now)


def covered_by(selection: Selection, now: datetime) -> tuple[datetime, datetime]:
    """Return the times that rollups count of a selection's range."""
    window = window_of(selection, now)
    return selection.covered(window.since, window.until, now)


def window_for(
    since: datetime, until: datetime, terms: Sequence[Term], now: datetime
) -> TimeWindow:
    """Return what rollups count of a range under these terms: versions are known by the hour."""
    is_by_version = any(term.field in VERSION for term in terms)
    return align(since, until, now, Grain.HOUR if is_by_version else Grain.MINUTE)


def slot_width(window: TimeWindow, terms: Sequence[Term], now: datetime, limit: int) -> timedelta:
    """Return the narrowest round width that gives at most `limit` slots and can be counted."""
    span = window.until - window.since
    narrowest = WIDTHS[kept_of(window.since, now)]
    if any(term.field in VERSION for term in terms):
        narrowest = max(narrowest, WIDTHS[Grain.HOUR])
    wide = (width for width in SLOT_WIDTHS if width >= narrowest)
    return next((width for width in wide if span / width <= limit), SLOT_WIDTHS[-1])


def read_counts(counted: Sequence[int]) -> RunCounts:
    """Read sums of `COUNTED`; others may follow."""
    sums = dict(zip(COUNTED, counted, strict=False))
    unchecked, retries, failed = (
        sum(sums[name] for name in names) for names in (UNCHECKED, TRIED, FAILED)
    )
    ends = sums["ok_first"], sums["repaired"], sums["degraded"]
    return RunCounts(
        runs=sums["runs"],
        degraded=sums["degraded"],
        first_pass=sums["ok_first"],
        repaired=sums["repaired"],
        retry_tokens=sums["retry_input_tokens"] + sums["retry_output_tokens"],
        retry_milliseconds=sums["retry_ms"],
        unchecked=unchecked,
        altered=sums["ok_altered"],
        cancelled=sums["cancelled"],
        calls=sums["attempts"],
        calls_failed=min(failed, sums["attempts"]),
        first_attempts=first_attempts(sums["attempts"] - unchecked, failed, *ends, retries),
    )


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


MOST_JUDGED, MOST_WORST = 1_000, 300
"""The busiest series of a large project that are judged; those with the most failures beside."""
DAY = WIDTHS[Grain.DAY]
_FAILED = " + ".join(f"coalesce(sum({name}), 0)" for name in ("degraded", *FAILURE_KINDS))
COUNT = f"""
SELECT series_id, sum(events), {_FAILED} FROM diagnostics_rollup_day
WHERE project_id = %(project)s AND bucket >= %(since)s AND bucket < %(until)s
"""  # noqa: S608 - our own names
NEXT = "SELECT id FROM diagnostics_series WHERE project_id = %(project)s AND id > %(last)s "
IDS = """
SELECT id FROM diagnostics_series
WHERE project_id = %(project)s AND key IN (
    SELECT md5(json_build_array(environment, node, provider, model)::text)::uuid
    FROM unnest(
        %(environment)s::text[], %(node)s::text[], %(provider)s::text[], %(model)s::text[]
    ) AS asked (environment, node, provider, model)
)
"""


@dataclass(frozen=True, slots=True)
class SeriesChoice:
    """The ids of the busiest and of the worst series, and how many others had calls."""

    busiest: Sequence[int]
    worst: Sequence[int]
    left_out: int

    @property
    def chosen(self) -> Sequence[int]:
        return list(dict.fromkeys((*self.busiest, *self.worst)))


def is_large(project_id: int) -> bool:
    more = Series.objects.filter(project_id=project_id).order_by()[MOST_JUDGED : MOST_JUDGED + 1]
    return more.exists()


def choose_series(
    project_id: int, terms: Sequence[Term], since: datetime, until: datetime
) -> SeriesChoice | None:
    """Return the series to judge by their calls on the days of a range; None for all of them."""
    if not is_large(project_id):
        return None
    parameters = {"project": project_id, "since": floor(since, DAY), "until": until}
    text = f"{COUNT}{write_narrowing(terms)} GROUP BY 1 ORDER BY 1"
    counted = fetch(text, {**parameters, **term_params(terms)})
    busiest = [row[0] for row in nlargest(MOST_JUDGED, counted, key=itemgetter(1))]
    worst = [row[0] for row in nlargest(MOST_WORST, counted, key=itemgetter(2)) if row[2]]
    return SeriesChoice(busiest, worst, len(counted) - len({*busiest, *worst}))


def ids_of(project_id: int, keys: Iterable[SeriesKey]) -> list[int]:
    columns = zip(*keys, strict=True)
    by_name = {name: list(values) for name, values in zip(SERIES, columns, strict=False)}
    if not by_name:
        return []
    return [identifier for (identifier,) in fetch(IDS, {"project": project_id, **by_name})]


def next_series(project_id: int, terms: Sequence[Term], last: int, limit: int) -> list[int]:
    """Return the ids of a project's series after an id, in order."""
    parameters = {"project": project_id, "last": last, "limit": limit, **term_params(terms)}
    text = f"{NEXT}{write_terms(terms)} ORDER BY id LIMIT %(limit)s"
    return [identifier for (identifier,) in fetch(text, parameters)]


def latest_events(
    project_id: int, kinds: Collection[EventKind], selection: Selection, until: datetime, limit: int
) -> list[Event]:
    """Return the latest events of some kinds, newest first."""
    since, latest = selection.since(until), list[Event]()
    # The newest day mostly has enough, and planning to read ninety costs more than reading it.
    for begin in dict.fromkeys((max(since, until - WIDTHS[Grain.DAY]), since)):
        events = Event.objects.filter(
            project_id=project_id, kind__in=kinds, occurred_at__gte=begin, occurred_at__lt=until
        )
        events = narrow(events, selection, Days(begin, until))
        latest = list(events.order_by("-occurred_at", "-event_id")[:limit])
        if len(latest) == limit:
            break
    return latest
