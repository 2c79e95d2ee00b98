"""Searches of events.

A search reads the newest first, one stretch of time after another. A page of common events is
full after the newest stretch. A search without matches ends after 2 seconds, and can
continue from there.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from django.db.models import Model, Q, QuerySet

from diagnostics.selection.conditions import Days, narrow, within
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, events_of

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


def matching(project_id: int, selection: Selection, after: Q | None = None) -> "Matching[Event]":
    """Return the events that meet a selection after a place, for any stretch of time."""

    def between(begin: datetime, end: datetime) -> QuerySet[Event]:
        events = narrow(events_of(project_id), selection, Days(begin, end))
        return within(events, begin, end).filter(after or Q())

    return between


def scan(find: "Matching[RowT]", since: datetime, until: datetime, limit: int) -> Scanned[RowT]:
    """Scan back from `until` for `limit` rows, to `since`, or until the time is over.

    At least one stretch is scanned. With `limit` rows, older ones of the last stretch may be
    missing.
    """
    rows: list[RowT] = []
    stretch, reached = FIRST_STRETCH, until
    now = time.monotonic()
    end = now + PATIENCE_SECONDS
    while reached > since and len(rows) < limit and now <= end:
        begin = max(since, reached - stretch)
        rows += find(begin, reached)[: limit - len(rows)]
        reached = begin
        last, now = now, time.monotonic()
        # Half of the time left is enough for the next one, if it costs as much a minute.
        growth = (end - now) / 2 / max(now - last, 1e-3)
        stretch = max(stretch * min(growth, MOST_GROWTH), SHORTEST_STRETCH)
    return Scanned(rows, reached)
