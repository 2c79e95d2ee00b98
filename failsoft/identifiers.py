"""Identifiers with a timestamp: UUID version 7, without reading a clock or random source."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RANDOM_BYTES = 10
MAX_MILLISECONDS = (1 << 48) - 1


def uuid7(at: datetime, random_bits: bytes) -> UUID:
    """Build a UUIDv7 of the moment `at` (aware) from at least 10 bytes of randomness.

    Raises ValueError for a naive time, a time before 1970 or too few bytes (RFC 9562, 5.7).
    """
    if at.tzinfo is None:
        raise ValueError("the time of an identifier needs an offset")
    if len(random_bits) < RANDOM_BYTES:
        raise ValueError(f"an identifier needs {RANDOM_BYTES} bytes of randomness")
    randomness = int.from_bytes(random_bits[:RANDOM_BYTES], "big")
    high = randomness >> 68  # 12 bits
    low = randomness & ((1 << 62) - 1)
    milliseconds = (at - EPOCH) // timedelta(milliseconds=1)
    if not 0 <= milliseconds <= MAX_MILLISECONDS:
        raise ValueError("the time of an identifier must lie after 1970")
    return UUID(int=milliseconds << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low)


def read_uuid(text: str | None) -> UUID | None:
    """Return the UUID that a text is; None when it is none."""
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def event_id(
    occurred_at: datetime,
    project_id: int,
    correlation_id: str,
    node: str,
    cycle: int,
    attempt: int | None,
    name: str,
) -> UUID:
    """Return the id of an event of the planner; the same attempt always has the same id."""
    parts = (project_id, correlation_id, node, cycle, "" if attempt is None else attempt, name)
    return derived_id(occurred_at, parts)


def derived_id(at: datetime, parts: Iterable[object]) -> UUID:
    """Return the UUIDv7 of the moment `at` (aware) that always stands for these parts."""
    texts = [str(part).encode("utf-8", "surrogatepass") for part in parts]
    hashed = b"".join(len(text).to_bytes(4, "big") + text for text in texts)
    return uuid7(at, sha256(hashed).digest())


def time_of(identifier: UUID) -> datetime:
    """Return the time (UTC, milliseconds) of a UUIDv7; ValueError for other versions."""
    if identifier.version != 7:
        raise ValueError("only a version 7 identifier carries its time")
    return EPOCH + timedelta(milliseconds=identifier.int >> 80)


def first_id(at: datetime) -> UUID:
    """Return the lowest UUIDv7 of the moment `at` (aware), as the start of a search."""
    return uuid7(at, bytes(RANDOM_BYTES))
