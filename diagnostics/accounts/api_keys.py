"""API keys: `fs_<id>_<secret>`; only the id and the SHA-256 of the secret are stored.

The secret has 256 random bits, so a fast hash is enough; a password hash would take 450 ms.
"""

import re
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest

DUMMY_HASH = bytes(32)
SHAPE = re.compile(r"fs_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class Scope(StrEnum):
    """What a key may do; `admin` includes the other two."""

    INGEST = "ingest"
    READ = "read"
    ADMIN = "admin"


def parse_key(text: str) -> tuple[str, str] | None:
    """Split a key into id and secret; None for anything else."""
    match = SHAPE.fullmatch(text)
    return (match[1], match[2]) if match else None


def hash_secret(secret: str) -> bytes:
    """Hash the secret half of a key: SHA-256, 32 bytes."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def is_right_secret(secret: str, stored_hash: bytes | None) -> bool:
    """Compare in constant time; an unknown key (None) costs the same as a wrong one."""
    expected = DUMMY_HASH if stored_hash is None else stored_hash
    matches = compare_digest(hash_secret(secret), expected)
    return matches and stored_hash is not None


def allows(granted: frozenset[str], required: Scope) -> bool:
    return required in granted or Scope.ADMIN in granted
