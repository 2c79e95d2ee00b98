"""Late outcomes: assessments of answers by users and evaluators, and the runs they belong to.

1. An assessment with a run id belongs to that run, whether it is known yet or not.
2. An evaluation in telemetry names a span or a response. It belongs to the run of that call,
   else to a run of the same trace, until the span itself arrives.
3. A failed call is reported by its own event: assessments of its answer are ignored.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Annotated
from uuid import UUID

from django.db.models import Q
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from diagnostics.ingest.joined_calls import events_of_calls, key_of, reported_calls
from diagnostics.ingest.otlp.evaluations import AnswerEvaluation
from diagnostics.ingest.otlp.telemetry import CallPlace
from diagnostics.redaction.rules import redactor_of
from diagnostics.store.run_models import AssessedAs, Assessment
from diagnostics.store.sql import execute
from failsoft.events import EventKind, PlausibleTime, Short
from failsoft.json_values import clean_text

REASON_BYTES = 1_000
KEPT = ("subject", "verdict", "score", "assessed_at", "trace_id", "response", "is_linked")
Score = Annotated[float, Field(allow_inf_nan=False)]


class PostedAssessment(BaseModel):
    """A late assessment of a run's answer: the latest of each source counts."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    correlation_id: Annotated[Short, Field(description="of the run, which may come later")]
    verdict: AssessedAs
    source: Annotated[Short, Field(description="who judged: user-feedback, an evaluator's name")]
    score: Score | None = None
    reason: Annotated[str | None, Field(description="redacted, then cut to 1,000 bytes")] = None
    at: PlausibleTime


def record_assessments(project_id: int, posted: Sequence[PostedAssessment]) -> list[str]:
    """Store assessments of runs; return a status each: created, duplicate or conflict.

    A later one of the same source replaces the earlier. An earlier one that arrives late is a
    duplicate; another verdict or score at the same time is a conflict.
    """
    rows = [Assessment(**item.model_dump(exclude={"at"}), assessed_at=item.at) for item in posted]
    return _record(project_id, rows)


def record_evaluations(project_id: int, evaluations: Iterable[AnswerEvaluation]) -> list[str]:
    """Store evaluations from telemetry; return the status of each stored one."""
    return _record(project_id, [_row_of(evaluation) for evaluation in evaluations])


def link_assessments(project_id: int, places: Collection[CallPlace]) -> None:
    """Link assessments that arrived before their spans, in the transaction that stores these."""
    traces = {place.trace_id for place in places}
    replies = {UUID(key_of(place.response_id)) for place in places if place.response_id}
    unlinked = Assessment.objects.filter(project_id=project_id, is_linked=False)
    matching = unlinked.filter(Q(trace_id__in=traces) | Q(response__in=replies))
    rows = list(matching.order_by("pk").select_for_update())
    if rows:
        Assessment.objects.filter(pk__in=[row.pk for row in rows]).delete()
        _record(project_id, rows)


def _row_of(evaluation: AnswerEvaluation) -> Assessment:
    response = UUID(key_of(evaluation.response_id)) if evaluation.response_id else None
    return Assessment(
        correlation_id=evaluation.correlation_id or evaluation.trace_id,
        source=evaluation.source,
        subject=evaluation.span_id or str(response or ""),
        verdict=evaluation.verdict,
        score=evaluation.score,
        reason=evaluation.reason,
        assessed_at=evaluation.at,
        trace_id=evaluation.trace_id,
        response=response,
        is_linked=evaluation.correlation_id is not None,
    )


def _record(project_id: int, assessments: Sequence[Assessment]) -> list[str]:
    rows = list(_with_runs(project_id, assessments))
    if not rows:
        return []
    redact = redactor_of(project_id)
    records = [
        {
            "index": index,
            # Redacted like the ids of events, so that they match.
            "correlation_id": redact(clean_text(row.correlation_id), None, is_name=True).text,
            "source": redact(clean_text(row.source), None, is_name=True).text,
            "reason": redact(clean_text(row.reason), REASON_BYTES).text if row.reason else None,
            **{name: getattr(row, name) for name in KEPT},
        }
        for index, row in enumerate(rows)
    ]
    params = {"project": project_id, "rows": to_json(records).decode()}
    return [status for _, status in execute("record_assessments", params)]


def _with_runs(project_id: int, rows: Sequence[Assessment]) -> Iterator[Assessment]:
    """Yield the assessments with their runs, without those of failed calls."""
    unlinked = [row for row in rows if not row.is_linked]
    traces = {row.trace_id for row in unlinked if row.trace_id}
    replies = {row.response for row in unlinked if row.response}
    calls = list(reported_calls(project_id, traces, replies).reverse()) if unlinked else []
    events = {event.event_id: event for event in events_of_calls(project_id, calls)}
    by_span = {(call.trace_id, call.span_id): call.event_id for call in calls}
    by_reply = {call.response: call.event_id for call in calls}
    by_trace = {call.trace_id: call.event_id for call in calls}
    for row in rows:
        if not row.is_linked:
            event_id = by_span.get((row.trace_id, row.subject))
            if event_id is None and row.response is not None:
                event_id = by_reply.get(row.response)
            event = events.get(event_id) if event_id else None
            if event is not None and event.kind != EventKind.SUCCEEDED:
                continue
            row.is_linked = event is not None
            nearby_id = by_trace.get(row.trace_id)
            event = event or (events.get(nearby_id) if nearby_id else None)
            row.correlation_id = event.correlation_id if event else row.correlation_id
        yield row
