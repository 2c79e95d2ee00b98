"""The rejects inbox: what was refused at the door, redacted, bounded in number and rate.

It is written after the answer is decided and never stands in its way: a fault here is
logged, a flood leaves the first few a second, and the oldest rows make room.
"""

from collections.abc import Sequence
from time import monotonic

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet

from diagnostics import clock
from diagnostics.core.cleaning import clean_text
from diagnostics.core.refusals import HEAD_BYTES, LONGEST_TEXT, Refusal
from diagnostics.models import ApiKey, Reject
from diagnostics.redaction.redacting import redact, redact_name

logger = structlog.get_logger(__name__)

# So many requests of a project are noted at once, then this many a second.
BURST = 20.0
A_SECOND = 2.0
MOST_PROJECTS = 10_000
# The bound is looked at once in so many rows.
TRIM_EVERY = 20


class _Allowance:
    """How many more requests of each project this process will note."""

    def __init__(self) -> None:
        self._left: dict[int, tuple[float, float]] = {}

    def takes(self, project_id: int) -> bool:
        left, at = self._left.get(project_id, (BURST, monotonic()))
        left = min(left + (monotonic() - at) * A_SECOND, BURST)
        if len(self._left) >= MOST_PROJECTS:
            self._left.clear()
        self._left[project_id] = (left - (left >= 1.0), monotonic())
        return left >= 1.0

    def clear(self) -> None:
        self._left.clear()


allowance = _Allowance()


def note_refusals(key: ApiKey, endpoint: str, http_status: int, refusals: Sequence[Refusal]) -> int:
    """Keep what was refused; returns how many rows were written, never raises."""
    kept = settings.FAILSOFT_REJECTS_KEPT
    if not refusals or not kept or not allowance.takes(key.project_id):
        return 0
    try:
        rows = [_row(key, endpoint, http_status, refusal) for refusal in refusals]
        with transaction.atomic():
            _write(rows, kept)
    except (DatabaseError, ValueError) as error:
        logger.warning("refusals_not_kept", error=type(error).__name__)
        return 0
    return len(rows)


def rejects_of(project_id: int) -> QuerySet[Reject]:
    """Give the inbox of a project, newest first."""
    return Reject.objects.filter(project_id=project_id).order_by("-id")


def _write(rows: Sequence[Reject], kept: int) -> None:
    with connection.cursor() as cursor:
        # What a crash of the server can lose here is a note, not an event.
        cursor.execute("SET LOCAL synchronous_commit TO off")
    last = Reject.objects.bulk_create(rows)[-1]
    if any((row.pk or 0) % TRIM_EVERY == 0 for row in rows):
        _trim(last.project_id, kept)


def _trim(project_id: int, kept: int) -> None:
    oldest = rejects_of(project_id).values_list("pk", flat=True)[kept : kept + 1]
    for pk in oldest:
        Reject.objects.filter(project_id=project_id, pk__lte=pk).delete()


def _row(key: ApiKey, endpoint: str, http_status: int, refusal: Refusal) -> Reject:
    return Reject(
        project_id=key.project_id,
        api_key_id=key.pk,
        received_at=clock.now(),
        endpoint=endpoint[:64],
        http_status=http_status,
        source=redact_name(refusal.source, LONGEST_TEXT) if refusal.source else None,
        item_index=refusal.index,
        event_id=_safe(refusal.event_id) if refusal.event_id else None,
        code=_safe(refusal.code),
        path=_safe(refusal.path),
        message=_safe(refusal.message),
        errors=[{name: _safe(text) for name, text in error.items()} for error in refusal.errors],
        head=redact(clean_text(refusal.seen), HEAD_BYTES),
        size_bytes=refusal.size_bytes,
    )


def _safe(text: str) -> str:
    """Mask a text: names of unknown fields come from the sender too."""
    return redact(clean_text(text), LONGEST_TEXT)
