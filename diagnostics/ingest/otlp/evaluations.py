"""Evaluations in telemetry: what `gen_ai.evaluation.result` says of an answer.

As an event of the span that is evaluated, as a log record under it, or as a span of its own
below it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite

from diagnostics.ingest.otlp.attributes import Bag, short
from diagnostics.ingest.otlp.failsoft_attributes import VERDICT, read_fields
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
    """What was found of one answer, and by what it names the answer; `verdict` empty: unclear."""

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
    """Return the evaluations that an item tells; NoEventError where the run is not named."""
    return [_read(*told) for told in _told(item) if short(told[0], "error.type") is None]


def _told(item: Span | LogRecord) -> Iterator[tuple[Bag, Bag, int, str, str]]:
    """Give the attributes of evaluations, those around them, when they were, trace and span."""
    bag, trace_id = item.attributes, item.trace_id
    around = {**item.resource, **bag}
    if isinstance(item, LogRecord):
        if RESULT in (item.name, short(bag, "event.name")):
            body = item.body if isinstance(item.body, dict) else {}
            yield {**body, **bag}, around, item.at_ns, trace_id, item.span_id
        return
    ended_ns = item.ended_ns or item.started_ns
    if item.name == RESULT or NAME in bag:
        yield bag, around, ended_ns, trace_id, item.parent_id
    for event in item.events:
        if event.name == RESULT:
            at_ns = event.at_ns or ended_ns
            yield event.attributes, around, at_ns, trace_id, item.span_id


def _read(bag: Bag, around: Bag, at_ns: int, trace_id: str, span_id: str) -> AnswerEvaluation:
    is_traced = len(trace_id) == TRACE_DIGITS and bool(trace_id.strip("0"))
    run = read_fields(bag, around).get("correlation_id")
    response_id = short(bag, "gen_ai.response.id")
    if not (is_traced or run or response_id):
        raise NoEventError("gen_ai.response.id is required outside a trace")
    return AnswerEvaluation(
        short(bag, NAME) or UNNAMED,
        read_verdict(bag),
        moment_of(at_ns),
        trace_id if is_traced else "",
        span_id if is_traced else "",
        response_id,
        run,
        _score(bag),
        _reason(bag),
    )


def read_verdict(bag: Bag) -> str:
    """Return `good` or `bad`, as the agent tells it or by the label; else nothing.

    A score alone says neither: 1 is the best of one evaluator and the worst of another.
    """
    told = short(bag, VERDICT, "gen_ai.evaluation.score.label") or ""
    return VERDICTS.get("_".join(told.lower().replace("-", " ").split()), "")


def _score(bag: Bag) -> float | None:
    value = bag.get("gen_ai.evaluation.score.value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if isfinite(value) else None


def _reason(bag: Bag) -> str | None:
    """Return the explanation, as far as it can be kept after secrets were masked."""
    value = bag.get("gen_ai.evaluation.explanation")
    return value[:LONGEST_REASON] if isinstance(value, str) and value.strip() else None
