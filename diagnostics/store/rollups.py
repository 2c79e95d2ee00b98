"""The measures of a rollup row: one column per kind, the same in every grain.

The first columns are never null. All others are null instead of zero, which keeps a row at
about a quarter of its full width; `sum()` ignores nulls.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from failsoft.events import EventKind, PostedEvent
from failsoft.parsing.faults import AROUND

Row = Mapping[str, Any]

PLAIN: tuple[str, ...] = (
    "events", "runs", "degraded", "ok_first", "repaired", "failed", "stubbed", "circuit_open",
    "provider_failed", "budget_exhausted", "timed_out", "attempts", "invalid",
)  # fmt: skip
"""Counts that are never null: runs by outcome, attempts, invalid answers."""

OUTCOMES: tuple[str, ...] = PLAIN[3:11]
"""How a run ended: in one of these, or with an unchecked answer; `degraded` sums all but two."""

INVALID: tuple[str, ...] = (
    "not_json", "schema_invalid", "empty_output", "truncated", "multiple_objects", "duplicate_key",
    "refusal", "other_invalid",
)  # fmt: skip
"""Invalid answers by error type."""

FOUND_BY_CHECK = frozenset({"not_json", "schema_invalid", "multiple_objects", "duplicate_key"})
"""The types that only a check finds: their share is of the checked answers."""

CALL_ERRORS: tuple[str, ...] = (
    "call_timeout", "call_provider_error", "call_rate_limited", "call_other",
)  # fmt: skip
"""Calls without an answer, by reason."""

FAILURE_KINDS: tuple[str, ...] = (*INVALID, *CALL_ERRORS, "unknown_tool")
"""Every failing event, apart from ends of runs, is in exactly one of these."""

UNCHECKED: tuple[str, ...] = ("unchecked_no_schema", "unchecked_no_answer", "unchecked_over_budget")
"""Answers that nothing checked, by reason: calls, in none of the counts of valid answers."""

LATENCY_BOUNDS_MS: tuple[int, ...] = tuple(round(100 * 1.6**k) for k in range(15))
"""Upper bounds of the latency buckets; the sixteenth bucket has none."""

LATENCY: tuple[str, ...] = tuple(f"latency_{k:02}" for k in range(len(LATENCY_BOUNDS_MS) + 1))

COUNTS: tuple[str, ...] = (
    *INVALID, *CALL_ERRORS, "unknown_tool", "succeeded", "retries", "parse_failed",
    "retries_failed", "simplified", "json_repaired", "coerced", "tried_2", "tried_3", "tried_4",
    "tried_5", "good_2", "good_3", "good_4", "good_5", "latency_count", "invalid_latency_count",
    *UNCHECKED, "ok_altered", "cancelled", *LATENCY,
)  # fmt: skip
"""Counts that are null where there is none (integer)."""

SUMS: tuple[str, ...] = (
    "input_tokens", "output_tokens", "retry_input_tokens", "retry_output_tokens",
    "invalid_input_tokens", "invalid_output_tokens", "latency_ms", "retry_ms",
    "invalid_latency_ms",
)  # fmt: skip
"""Tokens and milliseconds, null where there are none (bigint)."""

MEASURES: tuple[str, ...] = (*PLAIN, *COUNTS, *SUMS)

SERIES: tuple[str, ...] = ("environment", "node", "provider", "model")
VERSION: tuple[str, ...] = (
    "prompt_version",
    "schema",
    "schema_version",
    "source",
    "release",
    "served",
    "region",
    "credential",
)

PACKED = (*PLAIN, *COUNTS)
PER_WORD = 6
BITS = 10
MOST_EVENTS = 1_000
WORDS = -(-len(PACKED) // PER_WORD)
PLACES = {name: divmod(place, PER_WORD) for place, name in enumerate(PACKED)}
CALL_TYPES = frozenset({"timeout", "provider_error", "rate_limited"})
# Degraded events without a stub, by reason; the default is a parse failure.
ENDS = {
    "circuit_open": "circuit_open",
    "provider_failed": "provider_failed",
    "budget_exhausted": "budget_exhausted",
    "timeout": "timed_out",
}
MOST_TOLD = 5


def count_columns(event: PostedEvent, row: Row) -> dict[str, Any]:
    """Return the counted columns without a field of their own, if they are true or known.

    The attribute `call_error_type` says why a call gave no answer, `simplified` that its
    prompt was simplified. An answer is altered if reading it changed a value. `w0`, `w1`, ...
    are the words of the measures.
    """
    columns: dict[str, Any] = {}
    if event.kind is EventKind.PROVIDER_ERROR:
        error = row["payload"]["attributes"].get("call_error_type")
        if isinstance(error, str) and error:
            columns["call_error_type"] = error[:200]
    if event.attributes.get("simplified") is True:
        columns["is_simplified"] = True
    if event.kind is EventKind.SUCCEEDED and event.unchecked is None and _is_altered(event):
        columns["is_altered"] = True
    return columns | _pack(event, columns)


def _is_altered(event: PostedEvent) -> bool:
    lossy = (repair.kind for repair in event.repairs if not repair.lossless)
    return bool(event.coerced) or any(kind not in AROUND for kind in lossy)


def _pack(event: PostedEvent, columns: Row) -> dict[str, int]:
    kind, latency = event.kind.value, event.latency_ms
    lenient = bool(event.repairs), bool(event.coerced)
    if kind == "degraded":
        end = event.reason or ""
        end = "parse_failed" if end == f"{event.node}_parse_failed" else end
        is_retried = (event.attempts or 0) > 1
        return _words_of_end(end, event.status, is_retried, *lenient)
    return _words(
        kind,
        min(event.attempt or 0, MOST_TOLD),
        event.unchecked,
        _error_of(event, columns.get("call_error_type")),
        None if latency is None else bisect_left(LATENCY_BOUNDS_MS, latency),
        "is_simplified" in columns,
        "is_altered" in columns,
        *lenient,
    )


def _error_of(event: PostedEvent, call_error: str | None) -> str:
    if event.kind is EventKind.PROVIDER_ERROR:
        return f"call_{call_error if call_error in CALL_TYPES else 'other'}"
    known = event.parse_error_type.value if event.parse_error_type else ""
    return "other_invalid" if known == "other" else known


@lru_cache(maxsize=256)
def _words_of_end(
    reason: str, status: str | None, is_retried: bool, is_repaired: bool, is_coerced: bool
) -> dict[str, int]:
    names = [*_any_names(is_repaired, is_coerced), "runs", "degraded"]
    names += ["stubbed" if status == "stubbed" else ENDS.get(reason, "failed")]
    if reason == "parse_failed":
        names += ["parse_failed", *(["retries_failed"] if is_retried else [])]
    return _packed_names(names)


@lru_cache(maxsize=4096)
def _words(
    kind: str,
    attempt: int,
    unchecked: str | None,
    error: str,
    bucket: int | None,
    is_simplified: bool,
    is_altered: bool,
    is_repaired: bool,
    is_coerced: bool,
) -> dict[str, int]:
    names = _any_names(is_repaired, is_coerced)
    if kind in {"unknown_tool", "cancelled"}:
        return _packed_names([*names, kind])
    names += _attempt_names(kind, attempt, unchecked)
    if kind != "succeeded":
        names += [error, *(["invalid"] if kind == "parse_invalid" else [])]
    names += ["simplified"] if kind == "succeeded" and is_simplified else []
    names += ["ok_altered"] if attempt == 1 and is_altered else []
    if bucket is not None:
        names += ["latency_count", f"latency_{bucket:02}"]
        names += ["invalid_latency_count"] if kind == "parse_invalid" else []
    return _packed_names(names)


def _any_names(is_repaired: bool, is_coerced: bool) -> list[str]:
    names = ["events", *(["json_repaired"] if is_repaired else [])]
    return [*names, *(["coerced"] if is_coerced else [])]


def _attempt_names(kind: str, attempt: int, unchecked: str | None) -> Iterator[str]:
    yield "attempts"
    if attempt > 1:
        yield "retries"
    # The attempt of a span may be known only later; place_calls.sql counts it then.
    if kind == "succeeded":
        yield from ("succeeded", "runs") if attempt else ("succeeded",)
    if unchecked is not None:
        yield f"unchecked_{unchecked}"
        return
    if attempt > 1:
        yield f"tried_{attempt}"
    if kind == "succeeded" and attempt:
        yield "ok_first" if attempt == 1 else "repaired"
        if attempt > 1:
            yield f"good_{attempt}"


def _packed_names(names: list[str]) -> dict[str, int]:
    """Pack names into words, without zeros."""
    words: dict[str, int] = {}
    for name in names:
        word, place = PLACES[name]
        words[f"w{word}"] = words.get(f"w{word}", 0) | 1 << BITS * place
    return words
