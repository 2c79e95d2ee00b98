"""POST and GET /api/v1/events."""

from dataclasses import replace

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.access.authentication import project_of
from diagnostics.api.bodies import Batch
from diagnostics.api.examples import BATCH_RESULT, EVENTS, EVENTS_PAGE
from diagnostics.api.exporting import ListView, Page
from diagnostics.api.filters import EVENT_PARAMETERS, read_given_limit, select
from diagnostics.api.ingesting import (
    BatchView,
    Result,
    refused_result,
    stored_result,
)
from diagnostics.api.openapi import EXPORTS, REFUSALS, describe_model
from diagnostics.core.batches import Refused, read_events
from diagnostics.core.cursors import BadCursorError
from diagnostics.core.events import Event
from diagnostics.core.ranges import WIDEST_RANGE
from diagnostics.core.sampling import count_sampled_out
from diagnostics.core.selection import Selection
from diagnostics.ingestion.quotas import note_sampled_out
from diagnostics.ingestion.recording import record
from diagnostics.models import ApiKey
from diagnostics.queries.events import events_of, page_of, payloads_of
from diagnostics.queries.narrowing import Days, narrow, within
from diagnostics.serializers import (
    ITEM_FIELDS,
    BatchResultSerializer,
    EventPageSerializer,
    describe_event,
)

MOST_STREAMED = 10_000_000
MAX_LIMIT = 500


class EventsView(BatchView, ListView):
    """What agents report, and what was kept of it."""

    @extend_schema(
        operation_id="events_create",
        request={
            "application/json": {"type": "array", "items": describe_model(Event)},
            "application/x-ndjson": {"type": "string"},
        },
        examples=[EVENTS, BATCH_RESULT],
        parameters=[OpenApiParameter("verbose", bool, description="list every item")],
        responses={200: BatchResultSerializer, 207: BatchResultSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Store a batch: each item once, redacted, answered for itself after commit."""
        return self.take(request, store_events)

    @extend_schema(
        operation_id="events_list",
        parameters=EVENT_PARAMETERS,
        examples=[EVENTS_PAGE],
        responses={200: EventPageSerializer, **EXPORTS},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List events, newest first, with their details."""
        asked = request.query_params.dict()
        selection = select(asked, EVENT_PARAMETERS)
        reading = _Reading(project_of(request).pk, selection, asked)
        is_page = request.accepted_renderer.format == "json"
        return self.answer_list(
            request,
            ITEM_FIELDS,
            reading.page,
            read_given_limit(asked, MAX_LIMIT if is_page else MOST_STREAMED),
            asked.get("cursor"),
            {"notes": reading.notes},
        )


class _Reading:
    """One list of events: its condition, read page by page."""

    def __init__(
        self, project_id: int, selection: Selection, asked: dict[str, str]
    ) -> None:
        self.notes: list[str] = []
        since, until = selection.begin, selection.end
        if selection.scans_events and "range" not in asked:
            # All there are was asked for: as far back as a scan goes, and it is said.
            selection = replace(selection, range=WIDEST_RANGE)
        if "range" in asked or selection.scans_events:
            since, until, said = selection.scanned_window(clock.now())
            self.notes = [said] if said else []
        events = narrow(events_of(project_id), selection, Days(since, until))
        self._events = within(events, since, until)

    def page(self, limit: int, cursor: str | None) -> Page:
        try:
            events, after = page_of(self._events, limit, cursor)
        except BadCursorError as error:
            raise ValidationError({"cursor": str(error)}) from error
        details = payloads_of(events)
        rows = [describe_event(event, details.get(event.event_id)) for event in events]
        return rows, after


def store_events(key: ApiKey, batch: Batch, keep_share: float) -> list[Result]:
    """Check and store the items of a batch; one result per item, in order, committed."""
    checked = read_events(batch.items, batch.body)
    events = [item for item in checked if isinstance(item, Event)]
    # One statement is one transaction: what it answers is committed.
    recorded = iter(record(key.project_id, events, keep_share))
    results = [
        refused_result(index, item)
        if isinstance(item, Refused)
        else stored_result(index, str(item.event_id), next(recorded).status.value)
        for index, item in enumerate(checked)
    ]
    if keep_share < 1.0:
        note_sampled_out(key, count_sampled_out(events, keep_share))
    return results
