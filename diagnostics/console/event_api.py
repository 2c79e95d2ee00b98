"""GET /api/v1/events: events with their details, newest first; posting them is in ingestion."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from diagnostics import clock
from diagnostics.accounts.authentication import project_of
from diagnostics.ingest.api.events import PostEventsView
from diagnostics.ingest.event_shapes import ITEM_FIELDS, EventPage, describe_event
from diagnostics.queries.events import matching, scan
from diagnostics.rest.cursors import EVENT_ORDER, NO_ID, read_cursor, write_cursor
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import EVENT_PARAMETERS, select
from diagnostics.rest.resources import EXPORTS
from diagnostics.selection.conditions import Days, narrow, within
from diagnostics.selection.fields import WIDEST_RANGE
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, events_of, payloads_of

INSTANT = timedelta(microseconds=1)


class EventListing:
    """The events of a project under a selection; `notes` say what was cut short."""

    def __init__(self, project_id: int, selection: Selection, params: dict[str, str]) -> None:
        self.notes: list[str] = []
        self._project_id = project_id
        self._selection = selection
        self._has_range = "range" in params

    def page(self, limit: int, cursor: str | None) -> Page:
        """Return rows and the next cursor; raises BadCursorError.

        A search may end before its page is full: the next page continues from there.
        """
        read = self._scan if self._selection.scans_events else self._read
        events, after = read(limit, cursor)
        details = payloads_of(events)
        rows = [describe_event(event, details.get(event.event_id)) for event in events]
        return rows, after

    def _read(self, limit: int, cursor: str | None) -> tuple[list[Event], str | None]:
        since, until = self._selection.begin, self._selection.end
        if self._has_range:
            since, until = self._selection.window(clock.now())
        days = Days(since, until)
        events = narrow(events_of(self._project_id), self._selection, days)
        return EVENT_ORDER.page(within(events, since, until), limit, cursor)

    def _scan(self, limit: int, cursor: str | None) -> tuple[list[Event], str | None]:
        # Without a range: as far back as a scan may go.
        widest = replace(self._selection, range=WIDEST_RANGE)
        wanted = self._selection if self._has_range else widest
        since, until, note = wanted.scanned_window(clock.now())
        self.notes += [note] if note else []
        find_events = matching(self._project_id, self._selection)
        if cursor:
            place = read_cursor(cursor, UUID)
            until = min(until, place[0] + INSTANT)
            find_events = matching(self._project_id, self._selection, EVENT_ORDER.behind(*place))
        scanned = scan(find_events, since, until, limit + 1)
        events, after = EVENT_ORDER.cut(scanned.rows, limit)
        if after is None and scanned.reached > since:
            at = f"{scanned.reached:%Y-%m-%dT%H:%M:%SZ}"
            self.notes.append(f"Searched back to {at} so far; the next page continues.")
            after = write_cursor(scanned.reached, NO_ID)
        return events, after


class EventsView(PostEventsView, ListView):
    most_streamed = 10_000_000

    @extend_schema(parameters=EVENT_PARAMETERS, responses={200: EventPage, **EXPORTS})
    def get(self, request: Request) -> HttpResponseBase:
        """List events, newest first, with their details."""
        params = request.query_params.dict()
        selection = select(params, EVENT_PARAMETERS)
        listing = EventListing(project_of(request).pk, selection, params)
        return self.answer_list(request, ITEM_FIELDS, listing.page, {"notes": listing.notes})
