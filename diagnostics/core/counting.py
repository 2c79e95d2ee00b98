"""What the ingest statement must be told to count and group an event."""

from collections.abc import Mapping
from typing import Any

from diagnostics.core.events import Event, EventKind
from diagnostics.core.fingerprints import VERSION, kind_of

Row = Mapping[str, Any]


def counted_by(event: Event, row: Row) -> dict[str, Any]:
    """Give what is counted and has no field of its own: only what is true or known.

    Why a call gave no answer is an attribute `call_error_type`; a simplified prompt, an
    attribute `simplified`.
    """
    told: dict[str, Any] = {}
    if event.kind is EventKind.PROVIDER_ERROR:
        said = row["payload"]["attributes"].get("call_error_type")
        if isinstance(said, str) and said:
            told["call_error_type"] = said[:200]
    if event.attributes.get("simplified") is True:
        told["is_simplified"] = True
    if event.repairs:
        told["is_repaired"] = True
    if event.coerced:
        told["is_coerced"] = True
    return told


def grouped_by(row: Row) -> dict[str, Any]:
    """Give the fingerprint of a failure and what it is made of; nothing for no failure."""
    if not row.get("payload"):
        return {}
    kind = kind_of(row)
    if kind is None:
        return {}
    return {
        "fingerprint": str(kind.fingerprint),
        "fingerprint_version": VERSION,
        "error_type": kind.error_type,
        "pointer": kind.pointer,
        "detail": kind.detail,
    }
