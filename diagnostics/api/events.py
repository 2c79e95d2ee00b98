"""POST and GET /api/v1/events."""

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.access.authentication import project_of
from diagnostics.api.bodies import Batch
from diagnostics.api.event_listing import EventListing
from diagnostics.api.examples import BATCH_RESULT, EVENTS, EVENTS_PAGE
from diagnostics.api.exporting import ListView
from diagnostics.api.filters import EVENT_PARAMETERS, read_given_limit, select
from diagnostics.api.ingesting import (
    BatchView,
    Result,
    refused_result,
    stored_result,
)
from diagnostics.api.openapi import EXPORTS, REFUSALS, describe_model
from diagnostics.core.batches import Refused, read_events
from diagnostics.core.events import Event
from diagnostics.core.sampling import count_sampled_out
from diagnostics.ingestion.quotas import note_sampled_out
from diagnostics.ingestion.recording import record
from diagnostics.models import ApiKey
from diagnostics.serializers import (
    ITEM_FIELDS,
    BatchResultSerializer,
    EventPageSerializer,
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
        listing = EventListing(project_of(request).pk, selection, asked)
        is_page = request.accepted_renderer.format == "json"
        return self.answer_list(
            request,
            ITEM_FIELDS,
            listing.page,
            read_given_limit(asked, MAX_LIMIT if is_page else MOST_STREAMED),
            asked.get("cursor"),
            {"notes": listing.notes},
        )


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
