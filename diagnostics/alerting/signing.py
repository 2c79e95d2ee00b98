"""Signatures of webhooks: Standard Webhooks 1.0, version `v1` (HMAC-SHA256)."""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32


class BadSecretError(ValueError):
    """a secret of a webhook is whsec_ and base64 of 24 to 64 bytes"""


def make_secret(random: bytes) -> str:
    return PREFIX + base64.b64encode(random).decode()


def read_secret(secret: str) -> bytes:
    """Return the bytes of a secret; the prefix may be missing."""
    try:
        found = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise BadSecretError(BadSecretError.__doc__) from None
    if not 24 <= len(found) <= 64:
        raise BadSecretError(BadSecretError.__doc__)
    return found


def sign(secret: str, identity: str, seconds: int, body: bytes) -> str:
    """Sign `id.timestamp.body`; `seconds` are of the Unix epoch."""
    told = f"{identity}.{seconds}.".encode() + body
    made = hmac.new(read_secret(secret), told, hashlib.sha256).digest()
    return "v1," + base64.b64encode(made).decode()


def signed_headers(
    secrets: Sequence[str], identity: str, seconds: int, body: bytes
) -> Mapping[str, str]:
    """Return the three headers; while a secret is replaced, both sign."""
    signatures = (sign(secret, identity, seconds, body) for secret in secrets)
    return {
        "webhook-id": identity,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(signatures),
    }
