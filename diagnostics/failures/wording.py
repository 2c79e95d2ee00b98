"""The wording of failure groups and their states."""

from collections.abc import Mapping

from diagnostics.figures import Tone

STATES: Mapping[str, Tone] = {
    "new": "warn",
    "regressed": "bad",
    "ongoing": "live",
    "resolved": "good",
    "muted": "quiet",
}
"""Every state with its tone, in the order of tabs."""

MEANINGS: Mapping[str, str] = {
    "new": "First seen less than a day ago.",
    "regressed": "Resolved before, and seen again.",
    "ongoing": "First seen more than a day ago.",
    "resolved": "Marked as fixed; regressed if seen again.",
    "muted": "Hidden from the open failures until unmuted.",
}

KINDS: Mapping[str, str] = {
    "not_json": "Not JSON",
    "schema_invalid": "Schema",
    "empty_output": "Empty output",
    "truncated": "Truncated",
    "multiple_objects": "Multiple objects",
    "duplicate_key": "Duplicate key",
    "refusal": "Refusal",
    "other": "Other invalid output",
    "unknown_tool": "Unknown tool",
    "timeout": "Timeout",
    "provider_error": "Provider error",
    "rate_limited": "Rate limited",
    "circuit_open": "Breaker open",
    "budget_exhausted": "Budget exhausted",
}

FAULTS: Mapping[str, str] = {
    "missing": "missing field",
    "enum": "value not allowed",
    "extra": "unexpected field",
    "type": "wrong type",
    "union_tag_invalid": "unknown variant",
}


# Timeouts of a call and of its run have the same name, and need a distinction.
TIMEOUT_OF: Mapping[str, str] = {"degraded": "run", "provider_error": "call"}


def title_of(kind: str, error_type: str, pointer: str, detail: str, node: str = "") -> str:
    """Return a short title: what went wrong, where in the answer, and at which node."""
    title = KINDS.get(error_type, error_type.replace("_", " "))
    if error_type == "timeout":
        detail = detail or TIMEOUT_OF.get(kind, "")
    detail_text = FAULTS.get(detail, detail.replace("_", " "))
    if detail_text and detail_text.casefold() != title.casefold():
        title = f"{title}: {detail_text}"
    if pointer:
        title += f" {pointer}" if detail_text else f" at {pointer}"
    return f"{title} · {node}" if node else title


ADVISED: Mapping[tuple[str, str], str] = {
    ("degraded", "timeout"): "run_timeout",
    **{
        ("provider_error", kind.removeprefix("call_")): kind
        for kind in ("call_timeout", "call_provider_error", "call_rate_limited")
    },
}
"""Error types whose advice has another name."""


def advice_kind(kind: str, error_type: str) -> str:
    return ADVISED.get((kind, error_type), error_type)
