"""One list of events as the API gives it: its condition, read page by page."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from diagnostics import clock
from diagnostics.api.exporting import Page
from diagnostics.core.cursors import read_cursor, write_cursor
from diagnostics.core.ranges import WIDEST_RANGE
from diagnostics.core.selection import Selection
from diagnostics.models import Event
from diagnostics.queries.events import (
    NO_ID,
    before,
    cut_page,
    events_of,
    page_of,
    payloads_of,
)
from diagnostics.queries.narrowing import Days, narrow, within
from diagnostics.queries.scanning import Matching, matching, scan
from diagnostics.serializers import describe_event

INSTANT = timedelta(microseconds=1)


class EventListing:
    """The events of a project under a selection; `notes` tells what was cut short."""

    def __init__(self, project_id: int, selection: Selection, asked: dict[str, str]) -> None:
        self.notes: list[str] = []
        self._project_id = project_id
        self._selection = selection
        self._has_range = "range" in asked

    def page(self, limit: int, cursor: str | None) -> Page:
        """Give rows and the next cursor; raises BadCursorError.

        A search may end before its page is full: the next page goes on from there.
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
        return page_of(within(events, since, until), limit, cursor)

    def _scan(self, limit: int, cursor: str | None) -> tuple[list[Event], str | None]:
        since, until = self._scanned_window()
        found_in = matching(self._project_id, self._selection)
        if cursor:
            place = read_cursor(cursor, UUID)
            until = min(until, place[0] + INSTANT)
            found_in = _behind(found_in, *place)
        scanned = scan(found_in, since, until, limit + 1)
        events, after = cut_page(scanned.events, limit)
        if after is None and scanned.reached > since:
            self.notes.append(_searched_to(scanned.reached))
            after = write_cursor(scanned.reached, NO_ID)
        return events, after

    def _scanned_window(self) -> tuple[datetime, datetime]:
        selection = self._selection
        if not self._has_range:
            # All there are was asked for: as far back as a scan goes, and it is said.
            selection = replace(selection, range=WIDEST_RANGE)
        since, until, said = selection.scanned_window(clock.now())
        if said:
            self.notes.append(said)
        return since, until


def _behind(found_in: Matching, at: datetime, identifier: UUID) -> Matching:
    return lambda begin, end: before(found_in(begin, end), at, identifier)


def _searched_to(reached: datetime) -> str:
    # The end of the range came with whatever offset it was asked for.
    at = reached.astimezone(UTC)
    return f"Searched back to {at:%Y-%m-%dT%H:%M:%SZ} so far; the next page goes on."
