"""Reads that look at events one by one: newest first, one stretch of time after another.

A page of what many events have is full after the newest stretch. A search for a word that
none has ends with the patience, and can go on from where it ended.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from diagnostics.queries.events import events_of
from diagnostics.selection.conditions import Days, narrow, within
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event

Matching = Callable[[datetime, datetime], QuerySet[Event]]
"""The events of begin <= t < end that are looked for, newest first."""

PATIENCE_SECONDS = 2.0
FIRST_STRETCH = timedelta(minutes=30)
SHORTEST_STRETCH = timedelta(minutes=1)
QUICK_SECONDS, SLOW_SECONDS = 0.2, 0.8


@dataclass(frozen=True, slots=True)
class Scanned:
    """What was found, and how far back was looked: everything since `reached`."""

    events: list[Event]
    reached: datetime


def matching(project_id: int, selection: Selection) -> Matching:
    """Return the events of a project that meet a selection, for any stretch of time."""

    def between(begin: datetime, end: datetime) -> QuerySet[Event]:
        events = narrow(events_of(project_id), selection, Days(begin, end))
        return within(events, begin, end)

    return between


def scan(
    found_in: Matching,
    since: datetime,
    until: datetime,
    most: int,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Scanned:
    """Look back from `until` for `most` events; stops there, at `since`, or impatiently.

    At least one stretch is looked at. Where `most` were found, older ones of the last
    stretch may be missing.
    """
    found: list[Event] = []
    stretch, reached = FIRST_STRETCH, until
    began = now = time.monotonic()
    while reached > since and len(found) < most and now - began <= patience_seconds:
        begin = max(since, reached - stretch)
        found += found_in(begin, reached)[: most - len(found)]
        reached = begin
        before, now = now, time.monotonic()
        stretch = _next_stretch(stretch, now - before)
    return Scanned(found, reached)


def _next_stretch(stretch: timedelta, took_seconds: float) -> timedelta:
    if took_seconds < QUICK_SECONDS:
        return stretch * 4
    if took_seconds > SLOW_SECONDS:
        return max(stretch / 2, SHORTEST_STRETCH)
    return stretch
