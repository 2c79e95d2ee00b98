"""Reads of the Now page beside the series themselves: curves, kinds, latest ends."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from diagnostics.core.onset import Bucket
from diagnostics.core.selection import Selection
from diagnostics.models import Event
from diagnostics.sql import statement


class SeriesKey(NamedTuple):
    """What makes a series, beside its project."""

    environment: str | None
    node: str
    provider: str | None
    model: str | None


def trends(
    project_id: int, since: datetime, until: datetime, buckets: int
) -> Mapping[SeriesKey, list[Bucket]]:
    """Give every series its runs in equal buckets between two times, oldest first."""
    seconds = (until - since).total_seconds() / buckets
    found: dict[SeriesKey, list[Bucket]] = defaultdict(lambda: [Bucket(0, 0)] * buckets)
    asked: Mapping[str, int | float | datetime] = {
        "project": project_id,
        "since": since,
        "until": until,
        "seconds": seconds,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement("series_trend"), asked)
        for *key, bucket, runs, degraded in cursor.fetchall():
            place = min(bucket, buckets - 1)
            found[SeriesKey(*key)][place] = Bucket(runs, degraded)
    return found


def kinds(
    project_id: int, since: datetime, until: datetime
) -> Mapping[SeriesKey, Counter[str]]:
    """Count the kinds of failure of every series between two times."""
    found: dict[SeriesKey, Counter[str]] = defaultdict(Counter)
    asked: Mapping[str, int | datetime] = {
        "project": project_id,
        "since": since,
        "until": until,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement("series_kinds"), asked)
        for *key, failure, seen in cursor.fetchall():
            found[SeriesKey(*key)][failure] = seen
    return found


def latest_degraded(
    project_id: int, selection: Selection, until: datetime, most: int
) -> list[Event]:
    """Give the latest runs that ended degraded, newest first."""
    events = Event.objects.filter(
        project_id=project_id,
        kind="degraded",
        occurred_at__gte=selection.since(until),
        occurred_at__lt=until,
    )
    for field, value in selection.filters.items():
        events = events.filter(
            **({f"{field}__isnull": True} if value is None else {field: value})
        )
    return list(events.order_by("-occurred_at", "-event_id")[:most])
