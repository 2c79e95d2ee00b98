"""`failsoft.*`: what the conventions lack, reported by the agent itself.

On a span, a log record or, for all of them, on the resource.
"""

from collections.abc import Mapping
from typing import Any

from diagnostics.ingest.otlp.attributes import AttributeMap, count, decoded, short

PREFIX = "failsoft."
_NAMES = (
    "correlation_id node provider model served_model upstream system_fingerprint prompt_version"
    " schema schema_version environment source release region credential output_mode"
    " finish_reason parse_error_type reason status tool"
)
TEXTS = tuple(_NAMES.split())
NUMBERS = ("cycle", "attempt", "attempts")
KIND = "failsoft.kind"
ATTEMPT = "failsoft.attempt"
VERDICT = "failsoft.verdict"
ERRORS = "failsoft.validation_errors"
KNOWN = frozenset(
    PREFIX + name for name in (*TEXTS, *NUMBERS, "kind", "verdict", "validation_errors")
)


def read_fields(attributes: AttributeMap, resource: AttributeMap) -> dict[str, Any]:
    """Return the reported event fields; those of the item override the resource's."""
    both: Mapping[str, Any] = {**_own_attributes(resource), **_own_attributes(attributes)}
    if not both:
        return {}
    fields: dict[str, Any] = {name: short(both, PREFIX + name) for name in TEXTS}
    fields |= {name: count(both, PREFIX + name) for name in NUMBERS}
    errors = decoded(both.get(ERRORS))
    fields["validation_errors"] = errors if isinstance(errors, list) else None
    return {name: value for name, value in fields.items() if value is not None}


def count_unknown(attributes: AttributeMap) -> int:
    return sum(key not in KNOWN for key in _own_attributes(attributes))


def _own_attributes(attributes: AttributeMap) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key.startswith(PREFIX)}
