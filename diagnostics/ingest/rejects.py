"""The rejects inbox: refused items, redacted, bounded in number and rate.

It is written once the response is decided and never affects it: a failure here is logged, a
flood is cut to a few requests per second, and the oldest rows are deleted.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet

from diagnostics import clock
from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.models import Reject
from diagnostics.redaction.rules import redactor_of
from diagnostics.rest.batches import BatchItem, RefusedItem
from failsoft.json_values import clean_text

HEAD_BYTES = 2_048
# Enough is read that no secret is cut before it is recognised.
SEEN_BYTES = 65_536
MOST_ITEMS = 10
MOST_ERRORS = 10
LONGEST_TEXT = 300


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused item or request; `raw_text` must be redacted before it is stored.

    `index` is the item's index in its batch, None for a whole request.
    """

    code: str
    path: str
    message: str
    raw_text: str
    size_bytes: int
    index: int | None = None
    event_id: str | None = None
    source: str | None = None
    errors: tuple[Mapping[str, str], ...] = ()


def refuse_body(body: bytes, code: str, message: str) -> Refusal:
    text = body[:SEEN_BYTES].decode("utf-8", "replace")
    return Refusal(code, "", message, text, len(body))


def refuse_items(items: Sequence[BatchItem], results: Sequence[Mapping[str, Any]]) -> list[Refusal]:
    """Return the refusals of the first refused items of a batch, from its results."""
    wrong = [result for result in results if result.get("errors")][:MOST_ITEMS]
    return [_refuse_item(items[result["index"]], result) for result in wrong]


def _refuse_item(item: BatchItem, result: Mapping[str, Any]) -> Refusal:
    first = result["errors"][0]
    text = item.text if isinstance(item, RefusedItem) else json.dumps(item, ensure_ascii=False)
    source = item.get("source") if isinstance(item, dict) else None
    return Refusal(
        code=first["code"],
        path=first["path"],
        message=first["message"],
        raw_text=text[:SEEN_BYTES],
        size_bytes=len(text.encode("utf-8", "replace")),
        index=result["index"],
        event_id=result.get("event_id"),
        source=source if isinstance(source, str) else None,
        errors=tuple(result["errors"][:MOST_ERRORS]),
    )


logger = structlog.get_logger(__name__)
# This many requests of a project are recorded at once, then `A_SECOND` per second.
BURST = 20.0
A_SECOND = 2.0
MOST_PROJECTS = 10_000
# The bound is checked once in this many rows.
TRIM_EVERY = 20


allowance: dict[int, tuple[float, float]] = {}
"""By project: how many more requests are recorded, and when that was."""


def _is_allowed(project_id: int) -> bool:
    remaining, at = allowance.get(project_id, (BURST, monotonic()))
    remaining = min(remaining + (monotonic() - at) * A_SECOND, BURST)
    if len(allowance) >= MOST_PROJECTS:
        allowance.clear()
    allowance[project_id] = (remaining - (remaining >= 1.0), monotonic())
    return remaining >= 1.0


def note_refusals(key: ApiKey, endpoint: str, http_status: int, refusals: Sequence[Refusal]) -> int:
    """Store refusals; return how many rows were written. Never raises."""
    limit = settings.FAILSOFT_REJECTS_KEPT
    if not refusals or not limit or not _is_allowed(key.project_id):
        return 0
    try:
        rows = [_row(key, endpoint, http_status, refusal) for refusal in refusals]
        with transaction.atomic():
            _write(rows, limit)
    except (DatabaseError, ValueError) as error:
        logger.warning("refusals_not_kept", error=type(error).__name__)
        return 0
    return len(rows)


def rejects_of(project_id: int) -> QuerySet[Reject]:
    return Reject.objects.filter(project_id=project_id).order_by("-id")


def _write(rows: Sequence[Reject], limit: int) -> None:
    with connection.cursor() as cursor:
        # A crash of the server can lose only a refusal here, no event.
        cursor.execute("SET LOCAL synchronous_commit TO off")
    last = Reject.objects.bulk_create(rows)[-1]
    if any((row.pk or 0) % TRIM_EVERY == 0 for row in rows):
        oldest = rejects_of(last.project_id).values_list("pk", flat=True)[limit : limit + 1]
        for pk in oldest:
            Reject.objects.filter(project_id=last.project_id, pk__lte=pk).delete()


def _row(key: ApiKey, endpoint: str, http_status: int, refusal: Refusal) -> Reject:
    redact = redactor_of(key.project_id)

    def safe(text: str, *, is_name: bool = False) -> str:
        # Names of unknown fields come from the sender too.
        return redact(clean_text(text), LONGEST_TEXT, is_name=is_name).text

    return Reject(
        project_id=key.project_id,
        api_key_id=key.pk,
        received_at=clock.now(),
        endpoint=endpoint[:64],
        http_status=http_status,
        source=safe(refusal.source, is_name=True) if refusal.source else None,
        item_index=refusal.index,
        event_id=safe(refusal.event_id) if refusal.event_id else None,
        code=safe(refusal.code),
        path=safe(refusal.path),
        message=safe(refusal.message),
        errors=[{name: safe(text) for name, text in error.items()} for error in refusal.errors],
        head=redact(clean_text(refusal.raw_text), HEAD_BYTES).text,
        size_bytes=refusal.size_bytes,
    )
