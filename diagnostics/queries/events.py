"""Queries of events: series with their rates, keyset pages and searches.

A search reads the newest first, one stretch of time after another. A page of common events is
full after the newest stretch. A search without matches ends after `patience_seconds`, and can
continue from there.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from diagnostics.analysis.series import RunCounts, SeriesKey
from diagnostics.queries.call_counts import FAILED, TRIED, first_attempts
from diagnostics.queries.sums import Question, Row, sum_rollups
from diagnostics.rest.cursors import Keyset
from diagnostics.selection.conditions import Days, narrow, within
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, events_of
from diagnostics.store.rollups import SERIES, UNCHECKED, VERSION
from diagnostics.store.windows import Grain, TimeWindow, align

BASELINE_SPAN = timedelta(days=7)
EVENT_ORDER = Keyset("occurred_at", "event_id", UUID)
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
# Sorts before every other: a cursor with it is at the start of its instant.
NO_ID = UUID(int=0)


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


RowT = TypeVar("RowT", bound=Model)
Matching = Callable[[datetime, datetime], QuerySet[RowT]]
"""The matching rows of begin <= t < end, newest first."""

PATIENCE_SECONDS = 2.0
FIRST_STRETCH = timedelta(minutes=30)
SHORTEST_STRETCH = timedelta(minutes=1)
MOST_GROWTH = 64.0


@dataclass(frozen=True, slots=True)
class Scanned(Generic[RowT]):
    """The rows found, and how far back the scan went: everything since `reached`."""

    rows: list[RowT]
    reached: datetime


def matching(project_id: int, selection: Selection) -> "Matching[Event]":
    """Return the events of a project that meet a selection, for any stretch of time."""

    def between(begin: datetime, end: datetime) -> QuerySet[Event]:
        events = narrow(events_of(project_id), selection, Days(begin, end))
        return within(events, begin, end)

    return between


def scan(
    find: "Matching[RowT]",
    since: datetime,
    until: datetime,
    limit: int,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Scanned[RowT]:
    """Scan back from `until` for `limit` rows, to `since`, or until the time is over.

    At least one stretch is scanned. With `limit` rows, older ones of the last stretch may be
    missing.
    """
    rows: list[RowT] = []
    stretch, reached = FIRST_STRETCH, until
    now = time.monotonic()
    end = now + patience_seconds
    while reached > since and len(rows) < limit and now <= end:
        begin = max(since, reached - stretch)
        rows += find(begin, reached)[: limit - len(rows)]
        reached = begin
        last, now = now, time.monotonic()
        # Half of the time left is enough for the next one, if it costs as much a minute.
        growth = (end - now) / 2 / max(now - last, 1e-3)
        stretch = max(stretch * min(growth, MOST_GROWTH), SHORTEST_STRETCH)
    return Scanned(rows, reached)
