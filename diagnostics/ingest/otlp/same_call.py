"""Whether two spans report the same model call: pure rules on their times and places.

Two instrumentations (of a framework and of a provider's SDK, say) write a span each:

1. One instrumentation reports a call twice only if a method of a framework calls that of its
   base class: one span is the other's parent, and both begin and end together.
2. Both name the provider's response: it must be the same one, at the same time. The traces
   may differ.
3. Otherwise they are in one trace, or both failed in the same way for the same service and
   model, and begin and end together.
"""

from diagnostics.ingest.otlp.mapping import CallPlace

MILLISECOND_NS = 1_000_000
# Spans of one call are nested, up to the difference of two clocks of one process.
SLACK_NS = 100 * MILLISECOND_NS
# The time one instrumentation takes before the other begins, and after it ends.
TOGETHER_NS = 250 * MILLISECOND_NS


def is_same_call(first: CallPlace, second: CallPlace) -> bool:
    """Whether two spans report the same call."""
    if first.scope == second.scope:
        return _is_nested(first, second) and distance_ns(first, second) is not None
    if first.response_id is not None and second.response_id is not None:
        return first.response_id == second.response_id and _overlap(first, second)
    is_failure = first.failure is not None and first.failure == second.failure
    return (
        (first.trace_id == second.trace_id or is_failure)
        and _overlap(first, second)
        and distance_ns(first, second) is not None
    )


def distance_ns(first: CallPlace, second: CallPlace) -> int | None:
    """Return how far apart two spans begin and end, in nanoseconds; None if too far."""
    begin, end = abs(first.started_ns - second.started_ns), abs(first.ended_ns - second.ended_ns)
    return begin + end if max(begin, end) <= TOGETHER_NS else None


def _is_nested(first: CallPlace, second: CallPlace) -> bool:
    is_parent = first.span_id == second.parent_id or second.span_id == first.parent_id
    return is_parent and first.trace_id == second.trace_id


def _overlap(first: CallPlace, second: CallPlace) -> bool:
    begin, end = max(first.started_ns, second.started_ns), min(first.ended_ns, second.ended_ns)
    return begin <= end + SLACK_NS
