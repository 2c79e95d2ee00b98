"""POST /api/v1/events; `diagnostics.console.event_api` lists them."""

import hmac
from collections.abc import Sequence
from contextlib import nullcontext

from django.conf import settings
from django.db import transaction
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import RootModel
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.api.batches import (
    BatchView,
    Result,
    StoredBatch,
    refused_result,
    stored_result,
)
from diagnostics.ingest.item_warnings import count_unchecked, rows_of
from diagnostics.ingest.posted_answers import JudgedAnswers, judge_answers
from diagnostics.ingest.posted_items import ShapedItem, describe_unknown, is_in_shape, shape_item
from diagnostics.ingest.quota_rules import count_sampled_out
from diagnostics.ingest.quotas import note_sampled_out
from diagnostics.ingest.recording import Recorded, RecordStatus, record_calls
from diagnostics.redaction.rules import redactor_of
from diagnostics.rest.batches import BatchItem, read_events
from diagnostics.rest.bodies import Batch
from diagnostics.rest.resources import REFUSALS, BatchResultResource
from failsoft.answered import PostedAnswer, is_answered
from failsoft.events import PostedEvent


class PostedItems(RootModel[list[PostedAnswer | PostedEvent]]):
    """Events, and answers that become events."""


class PostEventsView(BatchView):
    @extend_schema(
        request={"application/json": PostedItems, "application/x-ndjson": {"type": "string"}},
        parameters=[OpenApiParameter("verbose", bool, description="list every item")],
        responses={200: BatchResultResource, 207: BatchResultResource, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Store a batch: each item once, redacted, with a result of its own after commit."""
        return self.take(request, store_events)


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
