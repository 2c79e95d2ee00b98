"""Failure groups in words: what went wrong, and how its state looks."""

from collections.abc import Mapping

from diagnostics.web.charts.marks import Tone

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


# One kind, of a call and of the run that made it: two rows that are told apart.
TIMEOUT_OF: Mapping[str, str] = {"degraded": "run", "provider_error": "call"}


def title_of(kind: str, error_type: str, pointer: str, detail: str, node: str = "") -> str:
    """Say in a few words what went wrong, where in the answer, and at which node."""
    told = KINDS.get(error_type, error_type.replace("_", " "))
    if error_type == "timeout":
        detail = detail or TIMEOUT_OF.get(kind, "")
    more = FAULTS.get(detail, detail.replace("_", " "))
    if more and more.casefold() != told.casefold():
        told = f"{told}: {more}"
    if pointer:
        told += f" {pointer}" if more else f" at {pointer}"
    return f"{told} · {node}" if node else told


ADVISED: Mapping[tuple[str, str], str] = {
    ("degraded", "timeout"): "run_timeout",
    **{
        ("provider_error", kind.removeprefix("call_")): kind
        for kind in ("call_timeout", "call_provider_error", "call_rate_limited")
    },
}
"""Failures that are advised on under another name than that of their type of error."""


def advice_kind(kind: str, error_type: str) -> str:
    """Return the name under which a kind of failure is advised on."""
    return ADVISED.get((kind, error_type), error_type)
