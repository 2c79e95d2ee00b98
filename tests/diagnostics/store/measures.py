"""The measures of events, counted apart from the statements: a second opinion for tests."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from diagnostics.store.rollups import COUNTS, LATENCY_BOUNDS_MS, PLAIN, count_columns
from failsoft.events import EventKind, PostedEvent

CALL_TYPES = frozenset({"timeout", "provider_error", "rate_limited"})
# Degraded events without a stub, by reason; the default is a parse failure.
ENDS = {
    "circuit_open": "circuit_open",
    "provider_failed": "provider_failed",
    "budget_exhausted": "budget_exhausted",
    "timeout": "timed_out",
}
MOST_TOLD = 5


def count_by_hand(events: Iterable[PostedEvent]) -> Mapping[str, int]:
    """Return every count, but no sum, of events."""
    counter = Counter(name for event in events for name in _names_of(event))
    return {name: counter[name] for name in (*PLAIN, *COUNTS)}


def _names_of(event: PostedEvent) -> Iterator[str]:
    yield "events"
    if event.repairs:
        yield "json_repaired"
    if event.coerced:
        yield "coerced"
    match event.kind:
        case EventKind.DEGRADED:
            yield from _names_of_end(event)
        case EventKind.UNKNOWN_TOOL | EventKind.CANCELLED:
            yield event.kind.value
        case _:
            yield from _names_of_call(event)


def _names_of_end(event: PostedEvent) -> Iterator[str]:
    yield from ("runs", "degraded")
    yield "stubbed" if event.status == "stubbed" else ENDS.get(event.reason or "", "failed")
    if event.reason == f"{event.node}_parse_failed":
        yield "parse_failed"
        if (event.attempts or 0) > 1:
            yield "retries_failed"


def _names_of_call(event: PostedEvent) -> Iterator[str]:
    columns = count_columns(event, {"payload": {"attributes": event.attributes}})
    attempt, is_good = min(event.attempt or 0, MOST_TOLD), event.kind is EventKind.SUCCEEDED
    yield "attempts"
    if attempt > 1:
        yield "retries"
    if is_good:
        yield from ("succeeded", "runs") if attempt else ("succeeded",)
        yield from ("simplified",) if "is_simplified" in columns else ()
    elif event.kind is EventKind.PARSE_INVALID:
        error = event.parse_error_type.value if event.parse_error_type else ""
        yield from ("invalid", "other_invalid" if error == "other" else error)
    else:
        failure = columns.get("call_error_type")
        yield f"call_{failure if failure in CALL_TYPES else 'other'}"
    if event.unchecked is not None:
        yield f"unchecked_{event.unchecked}"
    elif attempt > 1:
        yield from (f"tried_{attempt}", *(("repaired", f"good_{attempt}") if is_good else ()))
    elif is_good and attempt:
        yield from ("ok_first", *(("ok_altered",) if "is_altered" in columns else ()))
    if event.latency_ms is not None:
        yield from (
            "latency_count",
            f"latency_{bisect_left(LATENCY_BOUNDS_MS, event.latency_ms):02}",
        )
        yield from ("invalid_latency_count",) if event.kind is EventKind.PARSE_INVALID else ()
