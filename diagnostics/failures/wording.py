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
    "regressed": "It was resolved, and came back.",
    "ongoing": "Known for longer than a day.",
    "resolved": "Somebody says that it is mended; if it comes back, it is regressed.",
    "muted": "Known and kept quiet for a while.",
}

KINDS: Mapping[str, str] = {
    "not_json": "Not JSON",
    "schema_invalid": "Breaks the schema",
    "empty_output": "Empty answer",
    "truncated": "Cut off",
    "multiple_objects": "Several answers at once",
    "duplicate_key": "A key given twice",
    "refusal": "Refused",
    "other": "Invalid answer",
    "unknown_tool": "Unknown tool",
    "timeout": "Call timed out",
    "provider_error": "Provider failed",
    "rate_limited": "Rate limited",
    "circuit_open": "Breaker was open",
    "budget_exhausted": "Budget was spent",
}

FAULTS: Mapping[str, str] = {
    "missing": "a field is missing",
    "enum": "a value that is not allowed",
    "extra": "a field too many",
    "type": "a value of the wrong type",
}


# A run that ended is told apart from the calls that it made.
ENDED: Mapping[str, str] = {"timeout": "Run out of time"}


def title_of(kind: str, error_type: str, pointer: str, detail: str) -> str:
    """Say in a few words what went wrong, and where in the answer."""
    told = KINDS.get(error_type, error_type.replace("_", " "))
    if kind == "degraded":
        told = ENDED.get(error_type, told)
    more = FAULTS.get(detail, detail.replace("_", " "))
    if more:
        told = f"{told}: {more}"
    return f"{told} at {pointer}" if pointer else told


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
