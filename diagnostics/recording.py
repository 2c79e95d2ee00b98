"""The one door to the event tables: ours and every outside agent's events pass it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.db import connection

from diagnostics.core.events import Event
from diagnostics.core.sampling import is_kept
from diagnostics.core.storing import make_row
from diagnostics.redacting import redact_found
from diagnostics.sql import statement


class RecordStatus(StrEnum):
    """What became of an event: stored, known already, or known with other content."""

    CREATED = "created"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome for the event at `index` of the batch."""

    index: int
    event_id: UUID
    status: RecordStatus


def record(
    project_id: int, events: Sequence[Event], keep_share: float = 1.0
) -> list[Recorded]:
    """Store events redacted, each once, in the caller's transaction; outcomes in order.

    The same event again is a duplicate; the same id with other content is a conflict and
    changes nothing (X-16). One statement, whatever the number of events. `keep_share` is
    the share of previews that a project above its spike bound keeps; every event counts.
    """
    if not events:
        return []
    rows = [
        make_row(
            index,
            event,
            redact_found,
            keep_preview=is_kept(event.event_id, keep_share),
        )
        for index, event in enumerate(events)
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            statement("record_events"),
            {"project": project_id, "rows": json.dumps(rows, ensure_ascii=False)},
        )
        return [
            Recorded(index, events[index].event_id, RecordStatus(status))
            for index, status in cursor.fetchall()
        ]
