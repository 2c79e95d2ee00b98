"""The only writer of the event tables, for our own events and those of external agents."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic_core import to_json

from diagnostics.ingest.answerers import watch_answerers
from diagnostics.ingest.quota_rules import is_kept
from diagnostics.ingest.series_names import settle_names
from diagnostics.redaction.event_rows import Row, make_row
from diagnostics.redaction.rules import redactor_of
from diagnostics.store.fingerprints import group_columns
from diagnostics.store.rollups import MOST_EVENTS, count_columns
from diagnostics.store.sql import FAILURES, execute
from diagnostics.store.windows import TimeMark
from failsoft.events import PostedEvent


class RecordStatus(StrEnum):
    """The result of an event: stored, known already, or known with other content."""

    CREATED = "created"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome for the event at `index` of the batch."""

    index: int
    event_id: UUID
    # Of its run, as stored: redacted.
    correlation_id: str
    status: RecordStatus
    time_mark: TimeMark | None = None


def record(
    project_id: int,
    events: Sequence[PostedEvent],
    keep_share: float = 1.0,
    *,
    is_demo: bool = False,
    unplaced: Collection[UUID] = (),
) -> list[Recorded]:
    """Store events redacted, each once, in the caller's transaction; outcomes in order.

    The same event again is a duplicate; the same id with other content is a conflict and
    changes nothing. One statement for any number of events. `keep_share` is the share of
    previews that a project above its spike bound keeps; every event counts.
    What is new is counted by delta rows and grouped by fingerprint in the same statement;
    demo events do not count in /metrics. The `unplaced` calls have no attempt number:
    diagnostics.ingest.span_runs derives it.
    """
    if len(events) > MOST_EVENTS:
        return _record_in_parts(project_id, events, keep_share, is_demo=is_demo, unplaced=unplaced)
    if not events:
        return []
    redact = redactor_of(project_id)
    event_rows = [
        make_row(index, event, redact, keep_preview=is_kept(event.event_id, keep_share))
        for index, event in enumerate(events)
    ]
    settle_names(project_id, event_rows)
    rows = [
        _row_of(row, event, event.event_id not in unplaced)
        for row, event in zip(event_rows, events, strict=True)
    ]
    deciding = sorted(zip(events, rows, strict=True), key=_naming_order)
    for rank, (_, row) in enumerate(deciding):
        row["rank"] = rank
    params = {"project": project_id, "rows": to_json(rows).decode(), "is_demo": is_demo}
    # Each part of the statement has a fixed cost, even if it matches no rows.
    left_out = "" if any("payload" in row for row in rows) else FAILURES
    ids = [event.event_id for event in events]
    runs = [str(row["correlation_id"]) for row in rows]
    recorded = [
        Recorded(index, ids[index], runs[index], RecordStatus(status), mark and TimeMark(mark))
        for index, status, mark in execute("record_events", params, left_out)
    ]
    if not is_demo:
        created = (item.index for item in recorded if item.status is RecordStatus.CREATED)
        watch_answerers(project_id, ((events[index], rows[index]) for index in created))
    return recorded


def _record_in_parts(
    project_id: int,
    events: Sequence[PostedEvent],
    keep_share: float,
    *,
    is_demo: bool,
    unplaced: Collection[UUID],
) -> list[Recorded]:
    parts = (
        (start, events[start : start + MOST_EVENTS]) for start in range(0, len(events), MOST_EVENTS)
    )
    return [
        replace(item, index=start + item.index)
        for start, part in parts
        for item in record(project_id, part, keep_share, is_demo=is_demo, unplaced=unplaced)
    ]


def _naming_order(event_and_row: tuple[PostedEvent, Row]) -> tuple[bool, datetime, int]:
    """Sort key: the last event of a run gives it its names. record_runs.sql sorts likewise."""
    event, row = event_and_row
    return "model" in row, event.occurred_at, event.event_id.int


def _row_of(row: Row, event: PostedEvent, is_placed: bool) -> Row:
    if not is_placed:
        event = event.model_copy(update={"attempt": None})
        row |= {"attempt": None, "is_unplaced": True}
    row["claimed_at"] = row.pop("occurred_at")
    row |= count_columns(event, row)
    row |= group_columns(row)
    # Omitted columns are null: most are, and each one sent costs server time.
    return {name: value for name, value in row.items() if value is not None}
