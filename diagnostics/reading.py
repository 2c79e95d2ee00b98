"""Reads of events: series with their rates, and lists by keyset."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from diagnostics.core.series import Counts, Rates, rate_series, sort_worst_first
from diagnostics.models import Event, EventPayload
from diagnostics.sql import statement

BASELINE_SPAN = timedelta(days=7)
OUTCOMES: Mapping[str, Q] = {
    "ok_first": Q(kind="succeeded", attempt=1),
    "repaired": Q(kind="succeeded", attempt__gt=1),
    "degraded": Q(kind="degraded", status="failed"),
    "stubbed": Q(kind="degraded", status="stubbed"),
    "circuit_open": Q(kind="degraded", reason="circuit_open"),
    "provider_failed": Q(kind="degraded", reason="provider_failed"),
    "budget_exhausted": Q(kind="degraded", reason="budget_exhausted"),
}


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """One series in a window: (environment, node, provider, model), counts and rates."""

    environment: str | None
    node: str
    provider: str | None
    model: str | None
    counts: Counts
    rates: Rates


class BadCursorError(ValueError):
    """the cursor is none that was given out"""


def series_rows(
    project_id: int,
    since: datetime,
    until: datetime,
    filters: Mapping[str, str | None] | None = None,
) -> list[SeriesRow]:
    """Give every series that ended a run in the window or the 7 days before it.

    The window is since <= t < until; the baseline is the 7 days before `since`. A filter
    (environment, node, provider, model, source, prompt_version) of None asks for null.
    Worst first.
    """
    asked: dict[str, int | str | datetime] = {
        "project": project_id,
        "since": since,
        "until": until,
        "baseline_since": since - BASELINE_SPAN,
        "filters": json.dumps(dict(filters or {})),
    }
    with connection.cursor() as cursor:
        cursor.execute(statement("series_counts"), asked)
        rows = [_read_series(row) for row in cursor.fetchall()]
    known = [row for row in rows if row.counts.runs or row.counts.baseline_runs]
    return [row for _, row in sort_worst_first((row.rates, row) for row in known)]


def events_of(project_id: int) -> QuerySet[Event]:
    """Give the events of a project, newest first."""
    events = Event.objects.filter(project_id=project_id)
    return events.order_by("-occurred_at", "-event_id")


def page_of(
    events: QuerySet[Event], limit: int, cursor: str | None
) -> tuple[list[Event], str | None]:
    """Give one page and the cursor of the next; raises BadCursorError.

    Keyset on (occurred_at, event_id): stable while events keep coming in.
    """
    if cursor:
        at, identifier = _read_cursor(cursor)
        events = events.filter(
            Q(occurred_at__lt=at) | Q(occurred_at=at, event_id__lt=identifier),
            occurred_at__lte=at,
        )
    found = list(events[: limit + 1])
    if len(found) <= limit:
        return found, None
    return found[:limit], _write_cursor(found[limit - 1])


def payloads_of(events: Sequence[Event]) -> dict[UUID, EventPayload]:
    """Give the details of these events (one project's), by event id."""
    if not events:
        return {}
    times = [event.occurred_at for event in events]
    found = EventPayload.objects.filter(
        project_id=events[0].project_id,
        event_id__in=[event.event_id for event in events],
        # The times let PostgreSQL look into the right days only.
        occurred_at__range=(min(times), max(times)),
    )
    return {payload.event_id: payload for payload in found}


def _read_series(row: Sequence[object]) -> SeriesRow:
    environment, node, provider, model, *numbers = row
    counts = Counts(*numbers)  # type: ignore[arg-type] # the statement gives integers
    return SeriesRow(
        environment,  # type: ignore[arg-type] # and texts
        node,  # type: ignore[arg-type]
        provider,  # type: ignore[arg-type]
        model,  # type: ignore[arg-type]
        counts,
        rate_series(counts),
    )


def _write_cursor(event: Event) -> str:
    text = f"{event.occurred_at.isoformat()}|{event.event_id}"
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[datetime, UUID]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, _, identifier = urlsafe_b64decode(padded.encode()).decode().partition("|")
        when = datetime.fromisoformat(at)
        if when.tzinfo is None:
            raise BadCursorError(BadCursorError.__doc__)
        return when, UUID(identifier)
    except ValueError as error:
        raise BadCursorError(BadCursorError.__doc__) from error
