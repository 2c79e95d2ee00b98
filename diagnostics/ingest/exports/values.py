"""Times, ids and attributes as exports write them."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from diagnostics.ingest.otlp.attributes import READ, is_known
from diagnostics.ingest.otlp.mapping import LATEST_NS, SPAN_DIGITS, TRACE_DIGITS
from diagnostics.ingest.otlp.telemetry import nanoseconds_of

HEX = re.compile(r"[0-9a-f]+")
# Of a number: one too large for this unit is in the next finer one.
UNITS = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
SCHEMA = ".json_schema"
Values = Mapping[str, Any]


def read_time(value: object) -> int:
    """Return a time in nanoseconds, 0 if there is none; raises ValueError if it is invalid.

    A text without an offset is UTC; the unit of a number follows from its size.
    """
    if value is None or value == "":
        return 0
    if isinstance(value, int | float) and not isinstance(value, bool):
        nanoseconds = value * next((unit for limit, unit in UNITS if abs(value) < limit), 1)
        if not 0 < nanoseconds < LATEST_NS:
            raise ValueError(f"no time: {str(value)[:40]}")
        return int(nanoseconds)
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise ValueError(f"no time: {str(value)[:40]!r}") from error
    return nanoseconds_of(at if at.tzinfo else at.replace(tzinfo=UTC))


def trace_id_of(text: str) -> str:
    """Return a trace id: the text if it is one, else one derived from it."""
    return _id_of(text, TRACE_DIGITS)


def span_id_of(text: str) -> str:
    """Return a span id in the same way; empty for an empty text."""
    return _id_of(text, SPAN_DIGITS) if text else ""


def _id_of(text: str, digits: int) -> str:
    plain = text.lower().removeprefix("0x").replace("-", "")
    if len(plain) == digits and HEX.fullmatch(plain) and plain.strip("0"):
        return plain
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:digits]


def known_of(values: Values) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None and is_known(name)}


def flat(values: Values, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested attributes under dotted names; attributes read as a whole stay nested."""
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, list) and any(isinstance(item, dict) for item in value):
            value = {str(place): item for place, item in enumerate(value)}
        if isinstance(value, dict) and not (key in READ or key.endswith(SCHEMA)):
            yield from flat(value, f"{key}.")
        else:
            yield key, values[name]
