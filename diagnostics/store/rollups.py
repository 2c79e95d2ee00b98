"""The measures of a rollup row: one column per kind, the same in every grain.

The first columns are never null. All others are null instead of zero, which keeps a row at
about a quarter of its full width; `sum()` ignores nulls.
"""

from collections.abc import Mapping
from typing import Any

from failsoft.events import AROUND, EventKind, PostedEvent

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
    *("prompt_version", "schema", "schema_version"),
    *("source", "release", "served", "region", "credential"),
)

MOST_EVENTS = 1_000
"""The events of one statement at most."""


def count_columns(event: PostedEvent, row: Row) -> dict[str, Any]:
    """Return the counted columns without a field of their own, if they are true or known.

    The attribute `call_error_type` says why a call gave no answer, `simplified` that its
    prompt was simplified. An answer is altered if reading it changed a value.
    """
    columns: dict[str, Any] = {}
    if event.kind is EventKind.PROVIDER_ERROR:
        error = row["payload"]["attributes"].get("call_error_type")
        if isinstance(error, str) and error:
            columns["call_error_type"] = error[:200]
    if event.attributes.get("simplified") is True:
        columns["is_simplified"] = True
    if event.kind is EventKind.SUCCEEDED and event.unchecked is None:
        lossy = (repair.kind for repair in event.repairs if not repair.lossless)
        if event.coerced or any(kind not in AROUND for kind in lossy):
            columns["is_altered"] = True
    return columns
