"""Late outcomes: what users and evaluators say of answers, and which run is meant.

1. Who names a run by its id is taken at the word, whether the run is known yet or not.
2. An evaluation in telemetry names a span or a response. It is of the run whose call that
   was; else of a run of the same trace, until the span itself has come.
3. A call that failed is told by its own event: what is said of its answer is passed over.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated
from uuid import UUID

from django.db.models import Q
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from diagnostics.ingest.joined_calls import key_of
from diagnostics.ingest.models import SpanCall
from diagnostics.ingest.otlp.evaluations import AnswerEvaluation
from diagnostics.redaction.rules import redactor_of
from diagnostics.store.models import Event
from diagnostics.store.run_models import AssessedAs, Assessment
from diagnostics.store.sql import execute
from failsoft.events import EventKind, PlausibleTime, Short
from failsoft.json_values import clean_text

REASON_BYTES = 1_000
# An event stands within so much of the begin and end of its span.
AROUND = timedelta(minutes=1)
Score = Annotated[float, Field(allow_inf_nan=False)]


class PostedAssessment(BaseModel):
    """What is said later of a run's answer: the latest of each source counts."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    correlation_id: Annotated[Short, Field(description="of the run, which may come later")]
    verdict: AssessedAs
    source: Annotated[Short, Field(description="who judged: user-feedback, an evaluator's name")]
    score: Score | None = None
    reason: Annotated[str | None, Field(description="redacted, then cut to 1,000 bytes")] = None
    at: PlausibleTime


def record_assessments(project_id: int, posted: Sequence[PostedAssessment]) -> list[str]:
    """Keep what is said of runs; a status each: created, duplicate or conflict.

    A later one of the same source replaces the earlier; an earlier one that comes late is a
    duplicate, another verdict or score of the same moment a conflict.
    """
    rows = [
        Assessment(
            correlation_id=one.correlation_id,
            source=one.source,
            verdict=one.verdict,
            score=one.score,
            reason=one.reason,
            assessed_at=one.at,
        )
        for one in posted
    ]
    return _record(project_id, rows)


def record_evaluations(project_id: int, evaluations: Iterable[AnswerEvaluation]) -> list[str]:
    """Keep what telemetry says of answers; a status of each that is kept."""
    rows = [_row_of(one) for one in evaluations]
    return _record(project_id, list(_located(project_id, rows)))


def link_assessments(project_id: int, traces: Collection[str], responses: Collection[str]) -> None:
    """Find the runs of what came before its spans, in the transaction that stores these."""
    replies = [UUID(key_of(one)) for one in responses]
    mine = Assessment.objects.filter(project_id=project_id, is_linked=False)
    found = mine.filter(Q(trace_id__in=traces) | Q(response__in=replies))
    rows = list(found.order_by("pk").select_for_update())
    if rows:
        Assessment.objects.filter(pk__in=[row.pk for row in rows]).delete()
        _record(project_id, list(_located(project_id, rows)))


def _row_of(one: AnswerEvaluation) -> Assessment:
    response = UUID(key_of(one.response_id)) if one.response_id else None
    return Assessment(
        correlation_id=one.correlation_id or one.trace_id,
        source=one.source,
        subject=one.span_id or str(response or ""),
        verdict=one.verdict,
        score=one.score,
        reason=one.reason,
        assessed_at=one.at,
        trace_id=one.trace_id,
        response=response,
        is_linked=one.correlation_id is not None,
    )


def _record(project_id: int, rows: Sequence[Assessment]) -> list[str]:
    if not rows:
        return []
    redact = redactor_of(project_id)
    said = [
        {
            "index": index,
            # As the ids of events, so that both are the same.
            "correlation_id": redact(clean_text(row.correlation_id), None, is_name=True).text,
            "source": redact(clean_text(row.source), None, is_name=True).text,
            "subject": row.subject,
            "verdict": row.verdict,
            "score": row.score,
            "reason": redact(clean_text(row.reason), REASON_BYTES).text if row.reason else None,
            "assessed_at": row.assessed_at,
            "trace_id": row.trace_id,
            "response": row.response,
            "is_linked": row.is_linked,
        }
        for index, row in enumerate(rows)
    ]
    asked = {"project": project_id, "rows": to_json(said).decode()}
    return [status for _, status in execute("record_assessments", asked)]


def _located(project_id: int, rows: Sequence[Assessment]) -> Iterator[Assessment]:
    """Say of each the run that it is of; what is said of a call that failed is left out."""
    calls = _calls_of(project_id, [row for row in rows if not row.is_linked])
    events = _events_of(project_id, calls)
    by_span = {(call.trace_id, call.span_id): call.event_id for call in calls}
    by_reply = {call.response: call.event_id for call in calls}
    by_trace = {call.trace_id: call.event_id for call in calls}
    for row in rows:
        if not row.is_linked:
            own = by_span.get((row.trace_id, row.subject))
            if own is None and row.response is not None:
                own = by_reply.get(row.response)
            event = events.get(own) if own else None
            if event is not None and event.kind != EventKind.SUCCEEDED:
                continue
            row.is_linked = event is not None
            near = by_trace.get(row.trace_id)
            event = event or (events.get(near) if near else None)
            row.correlation_id = event.correlation_id if event else row.correlation_id
        yield row


def _calls_of(project_id: int, rows: Sequence[Assessment]) -> list[SpanCall]:
    if not rows:
        return []
    traces = {row.trace_id for row in rows if row.trace_id}
    replies = {row.response for row in rows if row.response}
    named = Q(trace_id__in=traces) | Q(response__in=replies)
    return list(SpanCall.objects.filter(named, project_id=project_id).order_by("-pk"))


def _events_of(project_id: int, calls: Sequence[SpanCall]) -> Mapping[UUID, Event]:
    if not calls:
        return {}
    begin = min(call.started_at for call in calls) - AROUND
    end = max(call.ended_at for call in calls) + AROUND
    mine = Event.objects.filter(project_id=project_id, occurred_at__range=(begin, end))
    found = mine.filter(event_id__in={call.event_id for call in calls})
    return {event.event_id: event for event in found}
