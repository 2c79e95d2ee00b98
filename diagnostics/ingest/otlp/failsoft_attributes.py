"""`failsoft.*`: what the conventions lack, told by the agent itself.

On a span, a log record or, for all of them, on the resource.
"""

from collections.abc import Mapping
from typing import Any

from diagnostics.ingest.otlp.attributes import Bag, count, short
from failsoft.events import EventKind

PREFIX = "failsoft."
TEXTS = (
    "correlation_id",
    "node",
    "provider",
    "model",
    "served_model",
    "upstream",
    "system_fingerprint",
    "prompt_version",
    "schema",
    "schema_version",
    "environment",
    "source",
    "release",
    "output_mode",
    "finish_reason",
    "parse_error_type",
    "reason",
    "status",
    "tool",
)
NUMBERS = ("cycle", "attempt", "attempts")
KIND = "failsoft.kind"
VERDICT = "failsoft.verdict"
KNOWN = frozenset(PREFIX + name for name in (*TEXTS, *NUMBERS, "kind", "verdict"))


def read_fields(bag: Bag, resource: Bag) -> dict[str, Any]:
    """Return the event fields that are told; the resource speaks where the item is silent."""
    both: Mapping[str, Any] = {**_of(resource), **_of(bag)}
    if not both:
        return {}
    told: dict[str, Any] = {name: short(both, PREFIX + name) for name in TEXTS}
    told |= {name: count(both, PREFIX + name) for name in NUMBERS}
    return {name: value for name, value in told.items() if value is not None}


def told_kind(bag: Bag) -> EventKind | None:
    """Return the kind an agent names for a span; None when it does not, or names none of ours."""
    kind = short(bag, KIND)
    return EventKind(kind) if kind in frozenset(EventKind) else None


def is_own(name: str) -> bool:
    """Whether an attribute is one of ours."""
    return name.startswith(PREFIX)


def count_unknown(bag: Bag) -> int:
    """Count keys that begin with `failsoft.` and mean nothing."""
    return sum(is_own(key) and key not in KNOWN for key in bag)


def _of(bag: Bag) -> dict[str, Any]:
    return {key: value for key, value in bag.items() if is_own(key)}
