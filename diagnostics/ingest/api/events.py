"""POST and GET /api/v1/events."""

import hmac
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import RootModel
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.authentication import project_of
from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.api.batches import (
    BatchView,
    Result,
    StoredBatch,
    refused_result,
    stored_result,
)
from diagnostics.ingest.event_shapes import ITEM_FIELDS, EventPage, describe_event
from diagnostics.ingest.item_warnings import count_unchecked, rows_of
from diagnostics.ingest.posted_answers import JudgedAnswers, judge_answers
from diagnostics.ingest.posted_items import ShapedItem, describe_unknown, is_in_shape, shape_item
from diagnostics.ingest.quota_rules import count_sampled_out
from diagnostics.ingest.quotas import note_sampled_out
from diagnostics.ingest.recording import Recorded, RecordStatus, record_calls
from diagnostics.queries.events import matching, scan
from diagnostics.redaction.rules import redactor_of
from diagnostics.rest.batches import BatchItem, read_events
from diagnostics.rest.bodies import Batch
from diagnostics.rest.cursors import EVENT_ORDER, NO_ID, read_cursor, write_cursor
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import EVENT_PARAMETERS, select
from diagnostics.rest.resources import EXPORTS, REFUSALS, BatchResultResource
from diagnostics.selection.conditions import Days, narrow, within
from diagnostics.selection.fields import WIDEST_RANGE
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event, events_of, payloads_of
from failsoft.answered import PostedAnswer, is_answered
from failsoft.events import PostedEvent

INSTANT = timedelta(microseconds=1)


class PostedItems(RootModel[list[PostedAnswer | PostedEvent]]):
    """Events, and answers that become events."""


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


class EventsView(BatchView, ListView):
    most_streamed = 10_000_000

    @extend_schema(
        request={"application/json": PostedItems, "application/x-ndjson": {"type": "string"}},
        parameters=[OpenApiParameter("verbose", bool, description="list every item")],
        responses={200: BatchResultResource, 207: BatchResultResource, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Store a batch: each item once, redacted, with a result of its own after commit."""
        return self.take(request, store_events)

    @extend_schema(parameters=EVENT_PARAMETERS, responses={200: EventPage, **EXPORTS})
    def get(self, request: Request) -> HttpResponseBase:
        """List events, newest first, with their details."""
        params = request.query_params.dict()
        selection = select(params, EVENT_PARAMETERS)
        listing = EventListing(project_of(request).pk, selection, params)
        return self.answer_list(request, ITEM_FIELDS, listing.page, {"notes": listing.notes})


def store_events(key: ApiKey, batch: Batch, keep_share: float) -> StoredBatch:
    """Check and store the items of a batch; one result per item, in order, committed."""
    stored, events = post_items(key.project_id, batch.items, batch.body, keep_share)
    if keep_share < 1.0:
        note_sampled_out(key, count_sampled_out(events, keep_share))
    return stored


def post_items(
    project_id: int, items: Sequence[BatchItem], body: bytes, keep_share: float
) -> tuple[StoredBatch, list[PostedEvent]]:
    """Normalise, check and store the items of a body, each once; return their events, too."""
    shaped = _shape(project_id, items)
    wire_items = [
        shaped[index].item if index in shaped else item for index, item in enumerate(items)
    ]
    answers = {
        index: item
        for index in shaped
        if isinstance(item := wire_items[index], dict) and is_answered(item.get("name"))
    }
    judged = judge_answers(project_id, list(answers.values())) if answers else JudgedAnswers()
    classified = dict(zip(answers, judged.events, strict=True))
    others = iter(
        read_events([item for index, item in enumerate(wire_items) if index not in answers], body)
    )
    checked = [
        classified[index] if index in classified else next(others)
        for index in range(len(wire_items))
    ]
    events = [item for item in checked if isinstance(item, PostedEvent)]
    # One statement is a transaction of its own: its result is committed.
    with transaction.atomic() if judged.unplaced else nullcontext():
        recorded = iter(record_calls(project_id, events, keep_share, judged.unplaced))
    derived = {index for index, item in shaped.items() if not item.has_own_id}
    results = [
        _result_of(index, item, next(recorded), index in derived, was_answer=index in answers)
        if isinstance(item, PostedEvent)
        # The sender does not know an id that is derived from its item.
        else refused_result(index, None if index in derived else item.event_id, item.errors)
        for index, item in enumerate(checked)
    ]
    answered = (answer for answer in judged.events if isinstance(answer, PostedEvent))
    unchecked = [
        {"path": "", "code": "unchecked", "message": row.sentence}
        for row in rows_of(count_unchecked(answered))
    ]
    warnings = describe_unknown(shaped) + unchecked + judged.schema_faults
    return StoredBatch(results, warnings), events


def _shape(project_id: int, items: Sequence[BatchItem]) -> dict[int, ShapedItem]:
    """Return the items that had to be normalised, by index."""
    unshaped = {index: item for index, item in enumerate(items) if not is_in_shape(item)}
    if not unshaped:
        return {}
    redact = redactor_of(project_id)
    purpose = f"ids of the events of project {project_id}".encode()
    id_key = hmac.digest(settings.SECRET_KEY.encode(), purpose, "sha256")
    return {index: shape_item(item, redact, id_key) for index, item in unshaped.items()}


def _result_of(
    index: int, event: PostedEvent, recorded: Recorded, has_derived_id: bool, was_answer: bool
) -> Result:
    status = recorded.status
    # An item whose id is derived from its content cannot conflict: a schema registered in between
    # may change its classification.
    if has_derived_id and status is RecordStatus.CONFLICT:
        status = RecordStatus.DUPLICATE
    result = stored_result(index, str(event.event_id), status.value, recorded.time_mark)
    if was_answer:
        result["name"] = event.name
        result["parse_error_type"] = event.parse_error_type
        result["unchecked"] = event.unchecked
    return result
