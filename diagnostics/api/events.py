"""POST and GET /api/v1/events."""

from typing import Any

from django.db import transaction
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from diagnostics.api.bodies import read_items
from diagnostics.api.filters import EVENT_PARAMETERS, filter_events, read_limit
from diagnostics.api.openapi import describe_model
from diagnostics.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.core.api_keys import Scope
from diagnostics.core.batches import Refused, read_event
from diagnostics.core.cleaning import JSON
from diagnostics.core.events import Event
from diagnostics.reading import BadCursorError, events_of, page_of, payloads_of
from diagnostics.recording import RecordStatus, record
from diagnostics.serializers import (
    BatchResultSerializer,
    EventPageSerializer,
    ProblemSerializer,
    describe_event,
)

Result = dict[str, Any]
EXAMPLE = OpenApiExample(
    "one failed attempt",
    request_only=True,
    value=[
        {
            "event_id": "0199a3c2-7e1c-7b5e-9a53-3f8f6c1d2e4a",
            "name": "graph.next_step.parse_invalid",
            "occurred_at": "2026-11-21T14:32:07.120Z",
            "correlation_id": "run-8842",
            "cycle": 1,
            "attempt": 1,
            "provider": "anthropic",
            "model": "claude-haiku-4",
            "parse_error_type": "truncated",
            "validation_errors": [{"path": "/steps/2/tool", "message": "required"}],
        }
    ],
)
REFUSALS = dict.fromkeys((400, 401, 403, 413, 415, 422), ProblemSerializer)


class EventsView(APIView):
    """What agents report, and what was kept of it."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"POST": Scope.INGEST, "GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="events_create",
        request={
            "application/json": {"type": "array", "items": describe_model(Event)},
            "application/x-ndjson": {"type": "string"},
        },
        examples=[EXAMPLE],
        parameters=[OpenApiParameter("verbose", bool, description="list every item")],
        responses={200: BatchResultSerializer, 207: BatchResultSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Store a batch: each item once, redacted, answered for itself after commit."""
        items = read_items(request._request)
        results = store_items(project_of(request).pk, items)
        is_verbose = request.query_params.get("verbose", "") in ("1", "true")
        return _answer(results, is_verbose)

    @extend_schema(
        operation_id="events_list",
        parameters=EVENT_PARAMETERS,
        responses={200: EventPageSerializer, 400: ProblemSerializer},
    )
    def get(self, request: Request) -> Response:
        """List events, newest first, with their details."""
        asked = request.query_params.dict()
        events = filter_events(events_of(project_of(request).pk), asked)
        try:
            page, after = page_of(events, read_limit(asked), asked.get("cursor"))
        except BadCursorError as error:
            raise ValidationError({"cursor": str(error)}) from error
        details = payloads_of(page)
        items = [describe_event(event, details.get(event.event_id)) for event in page]
        return Response({"items": items, "next": after})


def store_items(project_id: int, items: list[JSON]) -> list[Result]:
    """Check and store the items of a batch; one result per item, in order, committed."""
    checked = [read_event(item) for item in items]
    places = [index for index, item in enumerate(checked) if isinstance(item, Event)]
    events = [item for item in checked if isinstance(item, Event)]
    with transaction.atomic():
        recorded = record(project_id, events)
    outcomes = {places[outcome.index]: outcome for outcome in recorded}
    return [
        _refusal(index, item)
        if isinstance(item, Refused)
        else _result(index, str(item.event_id), outcomes[index].status)
        for index, item in enumerate(checked)
    ]


def _refusal(index: int, item: Refused) -> Result:
    result = {"index": index, "event_id": item.event_id, "status": "invalid"}
    return {**result, "errors": item.errors}


def _result(index: int, event_id: str, outcome: RecordStatus) -> Result:
    result: Result = {"index": index, "event_id": event_id, "status": outcome.value}
    if outcome is RecordStatus.CONFLICT:
        message = "this id is known with other content"
        result["errors"] = [{"path": "", "code": "conflict", "message": message}]
    return result


def _answer(results: list[Result], is_verbose: bool) -> Response:
    statuses = [result["status"] for result in results]
    accepted, duplicates = statuses.count("created"), statuses.count("duplicate")
    rejected = len(results) - accepted - duplicates
    shown = [r for r in results if is_verbose or r["status"] != "created"]
    body = {"accepted": accepted, "duplicates": duplicates, "rejected": rejected}
    code = status.HTTP_207_MULTI_STATUS if rejected else status.HTTP_200_OK
    return Response({**body, "results": shown}, status=code)
