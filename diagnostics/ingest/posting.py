"""Posted items as events: normalised, answers checked, each stored once."""

import hmac
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from diagnostics.ingest.posted_answers import JudgedAnswers, judge_answers
from diagnostics.ingest.posted_items import ShapedItem, describe_unknown, is_in_shape, shape_item
from diagnostics.ingest.recording import Recorded, RecordStatus
from diagnostics.ingest.span_runs import record_calls
from diagnostics.ingest.unchecked import count_unchecked, rows_of
from diagnostics.redaction.rules import redactor_of
from diagnostics.rest.batches import BatchItem, RefusedItem, read_events
from diagnostics.store.windows import TimeMark
from failsoft.answered import is_answered
from failsoft.events import PostedEvent


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item that became an event; the event of an answer holds its classification."""

    event: PostedEvent
    status: RecordStatus
    was_answer: bool
    time_mark: TimeMark | None = None


@dataclass(frozen=True, slots=True)
class PostedBatch:
    """The results of the items of a request, in order, and warnings for the sender."""

    items: list[StoredItem | RefusedItem]
    warnings: list[dict[str, str]]


def post_items(
    project_id: int, items: Sequence[BatchItem], body: bytes, keep_share: float
) -> PostedBatch:
    """Check and store the items of a body, each once; they are committed on return."""
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
    recorded = iter(_record(project_id, checked, keep_share, judged))
    stored = [
        _stored_item(item, next(recorded), shaped.get(index), index in answers)
        if isinstance(item, PostedEvent)
        else _without_derived_id(item, shaped.get(index))
        for index, item in enumerate(checked)
    ]
    return PostedBatch(stored, _warnings(shaped, judged.events) + judged.schema_faults)


def _stored_item(
    event: PostedEvent, recorded: Recorded, shaped: ShapedItem | None, was_answer: bool
) -> StoredItem:
    status = _final_status(recorded.status, shaped)
    return StoredItem(event, status, was_answer, recorded.time_mark)


def _record(
    project_id: int,
    checked: Sequence[PostedEvent | RefusedItem],
    keep_share: float,
    judged: JudgedAnswers,
) -> list[Recorded]:
    """Store the events; return what became of each, in order."""
    events = [item for item in checked if isinstance(item, PostedEvent)]
    # One statement is a transaction of its own: its result is committed.
    with transaction.atomic() if judged.unplaced else nullcontext():
        return record_calls(project_id, events, keep_share, judged.unplaced)


def _shape(project_id: int, items: Sequence[BatchItem]) -> dict[int, ShapedItem]:
    """Return the items that had to be normalised, by index."""
    unshaped = {index: item for index, item in enumerate(items) if not is_in_shape(item)}
    if not unshaped:
        return {}
    redact = redactor_of(project_id)
    purpose = f"ids of the events of project {project_id}".encode()
    id_key = hmac.digest(settings.SECRET_KEY.encode(), purpose, "sha256")
    return {index: shape_item(item, redact, id_key) for index, item in unshaped.items()}


def _final_status(status: RecordStatus, shaped: ShapedItem | None) -> RecordStatus:
    """Return the status of an item; one whose id is derived from its content cannot conflict.

    A schema registered in between may change its classification.
    """
    if shaped is None or shaped.has_own_id or status is RecordStatus.CREATED:
        return status
    return RecordStatus.DUPLICATE


def _without_derived_id(item: RefusedItem, shaped: ShapedItem | None) -> RefusedItem:
    """Return the refusal without an id that the sender does not know."""
    if shaped is None or shaped.has_own_id:
        return item
    return RefusedItem(None, item.errors)


def _warnings(
    shaped: Mapping[int, ShapedItem], answers: Sequence[PostedEvent | RefusedItem]
) -> list[dict[str, str]]:
    events = (answer for answer in answers if isinstance(answer, PostedEvent))
    return describe_unknown(shaped) + [
        {"path": "", "code": "unchecked", "message": row.sentence}
        for row in rows_of(count_unchecked(events))
    ]
