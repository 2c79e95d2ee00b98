"""Evaluations of answers in telemetry: `gen_ai.evaluation.result`.

They are an event of the evaluated span, a log record under it, or a span of their own below it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite

from diagnostics.ingest.otlp.attributes import OWN_VERDICT, AttributeMap, read_own_fields, short
from diagnostics.ingest.otlp.mapping import TRACE_DIGITS, NoEventError, moment_of
from diagnostics.ingest.otlp.telemetry import LogRecord, Span

RESULT = "gen_ai.evaluation.result"
NAME = "gen_ai.evaluation.name"
UNNAMED = "evaluation"
GOOD = (
    "good pass passed correct relevant acceptable accepted faithful grounded resolved safe"
    " positive yes true thumbs_up like"
)
BAD = (
    "bad fail failed incorrect wrong irrelevant unacceptable rejected unfaithful ungrounded"
    " unresolved unsafe negative no false thumbs_down dislike hallucinated poor"
)
VERDICTS = {
    **dict.fromkeys(GOOD.split(), "good"),
    **dict.fromkeys(BAD.split(), "bad"),
    **{f"not_{word}": "bad" for word in GOOD.split()},
}
LONGEST_REASON = 16_384


@dataclass(frozen=True, slots=True)
class AnswerEvaluation:
    """An evaluation of one answer, and the ids of the answer; an empty `verdict` is unclear."""

    source: str
    verdict: str
    at: datetime
    trace_id: str = ""
    span_id: str = ""
    response_id: str | None = None
    correlation_id: str | None = None
    score: float | None = None
    reason: str | None = field(default=None, repr=False)


def evaluations_of(item: Span | LogRecord) -> list[AnswerEvaluation]:
    """Return the evaluations in an item; raises NoEventError if one names no run."""
    return [
        _read_evaluation(*source)
        for source in _sources(item)
        if short(source[0], "error.type") is None
    ]


def _sources(item: Span | LogRecord) -> Iterator[tuple[AttributeMap, AttributeMap, int, str, str]]:
    """Yield the attributes of evaluations, all those in scope, the time, trace and span."""
    attributes, trace_id = item.attributes, item.trace_id
    around = {**item.resource, **attributes}
    if isinstance(item, LogRecord):
        if RESULT in (item.name, short(attributes, "event.name")):
            body = item.body if isinstance(item.body, dict) else {}
            yield {**body, **attributes}, around, item.at_ns, trace_id, item.span_id
        return
    ended_ns = item.ended_ns or item.started_ns
    if item.name == RESULT or NAME in attributes:
        yield attributes, around, ended_ns, trace_id, item.parent_id
    for event in item.events:
        if event.name == RESULT:
            at_ns = event.at_ns or ended_ns
            yield event.attributes, around, at_ns, trace_id, item.span_id


def _read_evaluation(
    attributes: AttributeMap, around: AttributeMap, at_ns: int, trace_id: str, span_id: str
) -> AnswerEvaluation:
    is_traced = len(trace_id) == TRACE_DIGITS and bool(trace_id.strip("0"))
    run = read_own_fields(attributes, around).get("correlation_id")
    response_id = short(attributes, "gen_ai.response.id")
    value = attributes.get("gen_ai.evaluation.score.value")
    score = None
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        score = float(value)
    reason = attributes.get("gen_ai.evaluation.explanation")
    if not (is_traced or run or response_id):
        raise NoEventError("gen_ai.response.id is required outside a trace")
    return AnswerEvaluation(
        short(attributes, NAME) or UNNAMED,
        read_verdict(attributes),
        moment_of(at_ns),
        trace_id if is_traced else "",
        span_id if is_traced else "",
        response_id,
        run,
        score,
        # Cut to a length that redaction can handle.
        reason[:LONGEST_REASON] if isinstance(reason, str) and reason.strip() else None,
    )


def read_verdict(attributes: AttributeMap) -> str:
    """Return `good` or `bad`, by our own attribute or the label; else an empty text.

    A score alone is not enough: 1 is the best of one evaluator and the worst of another.
    """
    label = short(attributes, OWN_VERDICT, "gen_ai.evaluation.score.label") or ""
    return VERDICTS.get("_".join(label.lower().replace("-", " ").split()), "")
