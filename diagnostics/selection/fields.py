"""What rows can be narrowed by, and what answers it: rollups at any size, or raw events."""

from collections.abc import Mapping

SERIES_FIELDS = ("environment", "node", "provider", "model")
"""Columns of every rollup."""
VERSION_FIELDS = ("source", "prompt_version", "schema", "schema_version", "release")
"""Columns of the second hour rollup."""
COUNTED_FIELDS = ("kind", "outcome")
"""Each value is a column of counts in every rollup."""
RAW_FIELDS = ("attempt", "reason", "correlation_id", "name", "pointer", "code")
"""Nothing is counted by these: raw events are read."""
FIELDS = (*SERIES_FIELDS, *VERSION_FIELDS, *COUNTED_FIELDS, *RAW_FIELDS)

ALIASES: Mapping[str, str] = {
    "env": "environment",
    "corr": "correlation_id",
    "correlation": "correlation_id",
    "prompt": "prompt_version",
    "type": "kind",
    "path": "pointer",
}
"""Short names that may be typed in `q`."""
SHORTEST: Mapping[str, str] = {
    "environment": "env",
    "correlation_id": "corr",
    "prompt_version": "prompt",
}

OUTCOMES = (
    "ok_first",
    "repaired",
    "degraded",
    "stubbed",
    "circuit_open",
    "provider_failed",
    "budget_exhausted",
)
NULLABLE = frozenset({"environment", "provider", "model", *VERSION_FIELDS, "attempt", "reason"})
EXACT_FIELDS = frozenset(
    {"node", "kind", "outcome", "attempt", "reason", "name", "pointer", "code"}
)
"""In `q` these match whole; names of other fields match by a part of them."""
LONGEST_VALUE = 200
UNKNOWN = "-"
"""Stands for null in a query: null is a value (an agent did not say)."""


def field_named(key: str) -> str | None:
    """Return the field that a key of the query language means, or None."""
    lowered = key.lower()
    found = ALIASES.get(lowered, lowered)
    return found if found in FIELDS else None
