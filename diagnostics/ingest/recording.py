"""The only writer of the event tables, for our own events and those of external agents."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from pydantic_core import to_json

from diagnostics import clock
from diagnostics.ingest.answerers import watch_answerers
from diagnostics.ingest.models import UnplacedCall
from diagnostics.ingest.otlp.telemetry import CallPlace, time_of
from diagnostics.ingest.quota_rules import is_kept
from diagnostics.ingest.series_names import settle_names
from diagnostics.redaction.event_rows import Row, make_row
from diagnostics.redaction.rules import redactor_of
from diagnostics.store.fingerprints import group_columns
from diagnostics.store.rollups import MOST_EVENTS, count_columns
from diagnostics.store.sql import FAILURES, execute, insert_rows
from diagnostics.store.windows import TimeMark
from failsoft.events import PostedEvent

# A better report of a call replaces the stored one.
BETTER_REPORT = """(project_id, event_id) DO UPDATE SET occurred_at = excluded.occurred_at,
started_at = excluded.started_at, trace_id = excluded.trace_id, parent_id = excluded.parent_id,
names_node = excluded.names_node"""


class RecordStatus(StrEnum):
    """The result of an event: stored, known already, or known with other content."""

    CREATED = "created"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome for the event at `index` of the batch."""

    index: int
    # Of its run, as stored: redacted.
    correlation_id: str
    status: RecordStatus
    time_mark: TimeMark | None = None


def record_calls(
    project_id: int,
    events: Sequence[PostedEvent],
    keep_share: float,
    unplaced: Mapping[UUID, CallPlace],
    nameless: Collection[UUID] = (),
) -> list[Recorded]:
    """Store events as `record` does, and where the calls without an attempt number stand.

    The `nameless` calls have the default node: nothing that has arrived names theirs.
    """
    if not unplaced:
        return record(project_id, events, keep_share)
    # Before the events: none of those that count when they arrive arrived earlier.
    received_at = clock.now()
    recorded = record(project_id, events, keep_share, unplaced=unplaced)
    created = [item for item in recorded if item.status is RecordStatus.CREATED]
    # A span sent twice in a request is one call.
    calls = {
        identity: item
        for item in reversed(created)
        if (identity := events[item.index].event_id) in unplaced
    }
    rows = []
    for identity, item in calls.items():
        event, place = events[item.index], unplaced[identity]
        rows.append(
            {
                "project_id": project_id,
                "correlation_id": item.correlation_id,
                "event_id": identity,
                "occurred_at": event.occurred_at,
                "received_at": received_at,
                "started_at": time_of(place.started_ns) if place.started_ns else event.occurred_at,
                "trace_id": place.trace_id,
                "parent_id": place.parent_id,
                "cycle": event.cycle,
                "is_end": False,
                "names_node": identity not in nameless,
            }
        )
    insert_rows(UnplacedCall._meta.db_table, rows, BETTER_REPORT)
    return recorded


def unplaced_of(project_id: int, event_ids: Iterable[UUID]) -> frozenset[UUID]:
    """Return which of these events have no attempt number."""
    calls = UnplacedCall.objects.filter(project_id=project_id, event_id__in=list(event_ids))
    return frozenset(calls.values_list("event_id", flat=True))


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
    changes nothing. One statement for at most 1,000 events. `keep_share` is the share of
    previews that a project above its spike bound keeps; every event counts.
    What is new is counted by delta rows and grouped by fingerprint in the same statement;
    demo events do not count in /metrics. The `unplaced` calls have no attempt number:
    diagnostics.ingest.span_runs derives it.
    """
    return [
        recorded
        for start in range(0, len(events), MOST_EVENTS)
        for recorded in _record_part(
            project_id, start, events[start : start + MOST_EVENTS], keep_share, is_demo, unplaced
        )
    ]


def _record_part(
    project_id: int,
    start: int,
    events: Sequence[PostedEvent],
    keep_share: float,
    is_demo: bool,
    unplaced: Collection[UUID],
) -> list[Recorded]:
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
    # The last event of a run gives it its names; record_runs.sql sorts likewise.
    deciding = sorted(
        zip(events, rows, strict=True),
        key=lambda pair: ("model" in pair[1], pair[0].occurred_at, pair[0].event_id.int),
    )
    for rank, (_, row) in enumerate(deciding):
        row["rank"] = rank
    params = {"project": project_id, "rows": to_json(rows).decode(), "is_demo": is_demo}
    # Each part of the statement has a fixed cost, even if it matches no rows.
    left_out = "" if any("payload" in row for row in rows) else FAILURES
    runs = [str(row["correlation_id"]) for row in rows]
    recorded = [
        Recorded(start + index, runs[index], RecordStatus(status), mark and TimeMark(mark))
        for index, status, mark in execute("record_events", params, left_out)
    ]
    if not is_demo:
        created = (item.index - start for item in recorded if item.status is RecordStatus.CREATED)
        watch_answerers(project_id, ((events[index], rows[index]) for index in created))
    return recorded


def _row_of(row: Row, event: PostedEvent, is_placed: bool) -> Row:
    if not is_placed:
        event = event.model_copy(update={"attempt": None})
        row |= {"attempt": None, "is_unplaced": True}
    row["claimed_at"] = row.pop("occurred_at")
    row |= count_columns(event, row)
    row |= group_columns(row)
    # Omitted columns are null: most are, and each one sent costs server time.
    return {name: value for name, value in row.items() if value is not None}
