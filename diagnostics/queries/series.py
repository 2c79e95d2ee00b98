"""Queries of series: counts of a window, what of a range is counted, and curves."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from diagnostics import clock
from diagnostics.analysis.series import RunCounts, SeriesKey
from diagnostics.queries.call_counts import FAILED, TRIED, first_attempts
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection
from diagnostics.store.kept_answers import ResultCache
from diagnostics.store.rollups import SERIES, UNCHECKED, VERSION
from diagnostics.store.windows import (
    MINUTES_KEPT,
    WIDTHS,
    Grain,
    RunBucket,
    TimeWindow,
    align,
    align_to,
)

BASELINE_SPAN = timedelta(days=7)
BASELINE_COUNTED = ("runs", "degraded")
COUNTED = (
    *BASELINE_COUNTED,
    "ok_first",
    "repaired",
    "retry_input_tokens",
    "retry_output_tokens",
    "retry_ms",
    "ok_altered",
    "attempts",
    "cancelled",
    *UNCHECKED,
    *TRIED,
    *FAILED,
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
