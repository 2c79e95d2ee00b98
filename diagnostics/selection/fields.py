"""The fields of a selection, and what serves them: rollups at any size, or raw events."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

SERVED = "served"


@dataclass(frozen=True, slots=True)
class Dimension:
    """A filter: a parameter, a key of `q`, and the column of that name."""

    name: str
    meaning: str = "exact; - asks for null"
    """The description of the parameter in the API."""
    short: str = ""
    """Its short name in `q`; the full name works, too."""
    other: str = ""
    """An alias in `q`."""
    is_exact: bool = False
    """Whether `q` matches the whole value; others match substrings."""
    is_nullable: bool = True


SERIES = (
    Dimension("environment", short="env"),
    Dimension("node", is_exact=True, is_nullable=False),
    Dimension("provider"),
    Dimension("model"),
)
"""Columns of every rollup."""
VERSION = (
    Dimension("source"),
    Dimension("prompt_version", short="prompt"),
    Dimension("schema"),
    Dimension("schema_version"),
    Dimension("release"),
    Dimension(SERVED, 'who answered, as "model at upstream"; - asks for the requested model'),
    Dimension("region"),
    Dimension("credential"),
)
"""Columns of the hourly rollup by version."""
COUNTED = (
    Dimension("kind", "event kind or parse error type", "", "type", True, False),
    Dimension("outcome", "how runs ended", "", "", True, False),
)
"""Each value is a column of counts in every rollup."""
RAW = (
    Dimension("attempt", "from 1", is_exact=True),
    Dimension("reason", "of degraded events, exact", is_exact=True),
    Dimension("correlation_id", "exact", "corr", "correlation", is_nullable=False),
    Dimension("name", "event name, exact", is_exact=True, is_nullable=False),
    Dimension("pointer", "of a validation error, exact", "", "path", True, False),
    Dimension("code", "of a validation error, exact", is_exact=True, is_nullable=False),
)
"""Fields without counts, which need raw events."""
DIMENSIONS = (*SERIES, *VERSION, *COUNTED, *RAW)

SERIES_FIELDS = tuple(field.name for field in SERIES)
VERSION_FIELDS = tuple(field.name for field in VERSION)
RAW_FIELDS = tuple(field.name for field in RAW)
FIELDS = tuple(field.name for field in DIMENSIONS)
NULLABLE = frozenset(field.name for field in DIMENSIONS if field.is_nullable)
EXACT_FIELDS = frozenset(field.name for field in DIMENSIONS if field.is_exact)
SHORTEST: Mapping[str, str] = {field.name: field.short for field in DIMENSIONS if field.short}
_TYPED = {key: f.name for f in DIMENSIONS for key in (f.name, f.short, f.other) if key}

OUTCOMES: Mapping[str, Mapping[str, object]] = {
    "ok_first": {"kind": "succeeded", "attempt": 1, "unchecked": None},
    "repaired": {"kind": "succeeded", "attempt__gt": 1, "unchecked": None},
    "degraded": {"kind": "degraded", "status": "failed"},
    "stubbed": {"kind": "degraded", "status": "stubbed"},
    "circuit_open": {"kind": "degraded", "reason": "circuit_open"},
    "provider_failed": {"kind": "degraded", "reason": "provider_failed"},
    "budget_exhausted": {"kind": "degraded", "reason": "budget_exhausted"},
    "unchecked": {"kind": "succeeded", "unchecked__isnull": False},
    "cancelled": {"kind": "cancelled"},
}
"""The outcomes of a run, each with the conditions on its last event."""
OTHER_OUTCOMES: Mapping[str, str] = {"recovered": "repaired"}
"""Names of outcomes in runs and pages, each with the one in events."""
OUTCOME_NAMES = (*OUTCOMES, *OTHER_OUTCOMES)
LONGEST_VALUE = 200
UNKNOWN = "-"
"""Null in a query, which is a value (not reported)."""


def field_named(key: str) -> str | None:
    """Return the field that a key of the query language means, or None."""
    return _TYPED.get(key.lower())


def keys_near(key: str) -> str:
    """Return a question for the key that was probably meant; empty without one."""
    near = get_close_matches(key.lower(), _TYPED, 1, 0.75)
    return "".join(f"; did you mean {known}?" for known in near)


def value_of(field: str, text: str) -> str:
    return OTHER_OUTCOMES.get(text, text) if field == "outcome" else text
