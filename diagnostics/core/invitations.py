"""The secret of an invitation: in the link only; its hash is what is kept."""

import hashlib
from base64 import urlsafe_b64encode

TOKEN_BYTES = 24


def write_token(random: bytes) -> str:
    """Write random bytes as the last part of a link."""
    return urlsafe_b64encode(random).decode().rstrip("=")


def hash_token(token: str) -> bytes:
    """Give the SHA-256 under which a token is found."""
    return hashlib.sha256(token.encode()).digest()
