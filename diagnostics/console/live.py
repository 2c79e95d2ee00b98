"""The tail of calls under the filters: what came in since the last poll."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from diagnostics import clock
from diagnostics.figures import Tone
from diagnostics.queries.events import matching, scan
from diagnostics.rest.cursors import NO_ID, BadCursorError, read_cursor, write_cursor
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event
from diagnostics.web.filter_bar import read_filters
from diagnostics.web.pages import ConsoleRequest, member_page, respond

FIRST_ROWS = 50
POLL_SECONDS = 2
# 20 rows a second.
MOST_ROWS = 20 * POLL_SECONDS
MOST_COUNTED = 1_000
# Events of several agents do not arrive in their order: the tail is a little late.
SETTLED = timedelta(seconds=2)
TONES: dict[str, Tone] = {"succeeded": "good", "unknown_tool": "warn", "cancelled": "quiet"}


@dataclass(frozen=True, slots=True)
class TailRow:
    event: Event

    @property
    def tone(self) -> Tone:
        if self.event.unchecked:
            return "quiet"
        return TONES.get(self.event.kind, "bad")

    @property
    def word(self) -> str:
        """Its kind, as it is typed in a filter."""
        event = self.event
        if event.kind == "succeeded":
            return "unchecked" if event.unchecked else "valid"
        return event.parse_error_type or event.call_error_type or event.reason or event.kind


def tail_context(request: ConsoleRequest, selection: Selection) -> Mapping[str, Any]:
    """Read the newest events; the tail goes on from the newest of them."""
    now = clock.now()
    since, until = selection.scanned_window(now)[0], _until(selection, now)
    events, reached = _newest(request, selection, since, until)
    rest = {"from": since.isoformat(), "to": reached.isoformat()} if reached else {}
    return {
        "tail": [TailRow(event) for event in events],
        "poll": _poll(selection, _cursor(events, until)) if until != selection.end else None,
        "reached": reached,
        "further": selection.query(**rest, range=None, follow="calls") if rest else None,
    }


@member_page
def live_rows(request: ConsoleRequest) -> HttpResponse:
    if not request.htmx:
        return redirect(f"{reverse('runs')}?follow=calls")
    selection = read_filters(request)
    cursor = request.GET.get("after", "")
    until = _until(selection, clock.now())
    try:
        at, identifier = read_cursor(cursor, UUID)
    except BadCursorError:
        at, identifier = until, NO_ID
    later = Q(occurred_at__gt=at) | Q(occurred_at=at, event_id__gt=identifier)
    newer = matching(request.project.pk, selection)(at, until).filter(later)
    events = list(newer[: MOST_COUNTED + 1])
    following = _cursor(events, at) if events else cursor
    context = {
        "tail": [TailRow(event) for event in events[:MOST_ROWS]],
        "more": max(len(events) - MOST_ROWS, 0),
        "is_capped": len(events) > MOST_COUNTED,
        "poll": _poll(selection, following),
        "seconds": POLL_SECONDS,
    }
    return respond(request, "runs/_tail_page", context)


def _until(selection: Selection, now: datetime) -> datetime:
    """Return the moment up to which calls are settled, in the range."""
    return min(selection.end or now, now - SETTLED)


def _newest(
    request: ConsoleRequest, selection: Selection, since: datetime, until: datetime
) -> tuple[list[Event], datetime | None]:
    """Return the newest events, and how far back was searched where patience ended."""
    found_in = matching(request.project.pk, selection)
    if not selection.scans_events:
        return list(found_in(since, until)[:FIRST_ROWS]), None
    scanned = scan(found_in, since, until, FIRST_ROWS)
    is_whole = scanned.reached <= since or len(scanned.rows) == FIRST_ROWS
    return scanned.rows, None if is_whole else scanned.reached


def _poll(selection: Selection, cursor: str) -> str:
    return "&".join(part for part in (selection.query(), f"after={cursor}") if part)


def _cursor(events: Sequence[Event], otherwise: datetime) -> str:
    if not events:
        return write_cursor(otherwise, NO_ID)
    return write_cursor(events[0].occurred_at, events[0].event_id)
