"""Whether two spans tell the same call of a model: pure rules, from when and where they stand.

Two instrumentations (of a framework and of a provider's SDK, say) write a span each:

1. One instrumentation tells a call twice only where a method of a framework calls that of its
   base: one span is the other's parent, and both begin and end together.
2. Both name the provider's response: it must be the same one, at the same time. The traces
   may differ.
3. Otherwise they stand in one trace, and begin and end together.
"""

from diagnostics.ingest.otlp.mapping import CallPlace

MILLISECOND_NS = 1_000_000
# Spans of one call lie within each other, as exactly as two clocks of one process agree.
SLACK_NS = 100 * MILLISECOND_NS
# What one instrumentation does before the other one begins, and after it has ended.
TOGETHER_NS = 250 * MILLISECOND_NS


def is_same_call(one: CallPlace, other: CallPlace) -> bool:
    """Whether two spans tell the same call."""
    if one.scope == other.scope:
        return _is_nested(one, other) and apart(one, other) is not None
    if one.response_id is not None and other.response_id is not None:
        return one.response_id == other.response_id and _overlap(one, other)
    return one.trace_id == other.trace_id and _overlap(one, other) and apart(one, other) is not None


def apart(one: CallPlace, other: CallPlace) -> int | None:
    """Return how far two spans begin and end apart, None for too far; nanoseconds."""
    begin, end = abs(one.started_ns - other.started_ns), abs(one.ended_ns - other.ended_ns)
    return begin + end if max(begin, end) <= TOGETHER_NS else None


def _is_nested(one: CallPlace, other: CallPlace) -> bool:
    is_parent = one.span_id == other.parent_id or other.span_id == one.parent_id
    return is_parent and one.trace_id == other.trace_id


def _overlap(one: CallPlace, other: CallPlace) -> bool:
    begin, end = max(one.started_ns, other.started_ns), min(one.ended_ns, other.ended_ns)
    return begin <= end + SLACK_NS
