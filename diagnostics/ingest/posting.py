"""Posted items as events: brought into shape, answers checked, all stored once."""

import hmac
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from diagnostics.ingest.posted_answers import JudgedAnswers, judge_answers
from diagnostics.ingest.posted_items import ShapedItem, describe_unknown, is_in_shape, shape_item
from diagnostics.ingest.recording import RecordStatus
from diagnostics.ingest.span_runs import record_calls
from diagnostics.redaction.rules import redactor_of
from diagnostics.rest.batches import RefusedItem, read_events
from failsoft.answered import is_answered
from failsoft.events import PostedEvent
from failsoft.json_values import JSON

UNCHECKED = "{} answers were stored unchecked: checking takes longer than one request may"


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item that became an event; the event of an answer says how it was classified."""

    event: PostedEvent
    status: RecordStatus
    was_answer: bool


@dataclass(frozen=True, slots=True)
class PostedBatch:
    """What became of the items of a request, in order, and what its sender should know."""

    items: list[StoredItem | RefusedItem]
    warnings: list[dict[str, str]]
    unchecked: int


def post_items(
    project_id: int, items: Sequence[JSON], body: bytes, keep_share: float
) -> PostedBatch:
    """Check and store the items of a body, each once; committed when it returns."""
    shaped = _shape(project_id, items)
    told = [shaped[n].item if n in shaped else item for n, item in enumerate(items)]
    answers = {n: item for n in shaped if isinstance(item := told[n], dict) and _is_answer(item)}
    judged = judge_answers(project_id, list(answers.values())) if answers else JudgedAnswers()
    classified = dict(zip(answers, judged.events, strict=True))
    rest = iter(read_events([one for n, one in enumerate(told) if n not in answers], body))
    checked = [classified[n] if n in classified else next(rest) for n in range(len(told))]
    statuses = _record(project_id, checked, keep_share, judged)
    stored = [
        StoredItem(one, _status(next(statuses), shaped.get(n)), n in answers)
        if isinstance(one, PostedEvent)
        else _refused(one, shaped.get(n))
        for n, one in enumerate(checked)
    ]
    return PostedBatch(stored, _warnings(shaped, judged.unchecked), judged.unchecked)


def _record(
    project_id: int,
    checked: Sequence[PostedEvent | RefusedItem],
    keep_share: float,
    judged: JudgedAnswers,
) -> Iterator[RecordStatus]:
    """Store the events; of each, in order, what became of it."""
    events = [one for one in checked if isinstance(one, PostedEvent)]
    # One statement is a transaction of its own: what it answers is committed.
    with transaction.atomic() if judged.unplaced else nullcontext():
        recorded = record_calls(project_id, events, keep_share, judged.unplaced)
    return (one.status for one in recorded)


def _shape(project_id: int, items: Sequence[JSON]) -> dict[int, ShapedItem]:
    """Bring those items into shape that are not in it already, by their places."""
    odd = {n: item for n, item in enumerate(items) if not is_in_shape(item)}
    if not odd:
        return {}
    redact = redactor_of(project_id)
    purpose = f"ids of the events of project {project_id}".encode()
    id_key = hmac.digest(settings.SECRET_KEY.encode(), purpose, "sha256")
    return {n: shape_item(item, redact, id_key) for n, item in odd.items()}


def _is_answer(item: Mapping[str, JSON]) -> bool:
    return is_answered(item.get("name"))


def _status(found: RecordStatus, shaped: ShapedItem | None) -> RecordStatus:
    """Return what became of an item: one with the id of its content is in no conflict.

    It may be classified otherwise by a schema that was registered meanwhile.
    """
    if shaped is None or shaped.has_own_id or found is RecordStatus.CREATED:
        return found
    return RecordStatus.DUPLICATE


def _refused(item: RefusedItem, shaped: ShapedItem | None) -> RefusedItem:
    """Return a refusal that names no id which the sender does not know."""
    if shaped is None or shaped.has_own_id:
        return item
    return RefusedItem(None, item.errors)


def _warnings(shaped: Mapping[int, ShapedItem], unchecked: int) -> list[dict[str, str]]:
    found = describe_unknown(shaped)
    if unchecked:
        message = UNCHECKED.format(unchecked)
        found.append({"path": "", "code": "unchecked", "message": message})
    return found
