"""Values that a database may hold but not read: AES-256-GCM with FAILSOFT_WORKING_KEY.

The identity of the row is authenticated with the value, so a ciphertext moved to another
row cannot be read.
"""

import base64
import json
import secrets
from collections.abc import Sequence
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

Identity = Sequence[str | int]

_FORMAT = b"\x01"
_NONCE_BYTES = 12


class WorkingKeyError(Exception):
    """FAILSOFT_WORKING_KEY is missing, or is not the key that wrote this value."""


def seal(identity: Identity, value: object) -> bytes:
    """Encrypt a JSON value for the row of this identity."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    plain = json.dumps(value, allow_nan=False).encode("ascii")
    return _FORMAT + nonce + _cipher().encrypt(nonce, plain, _bind(identity))


def unseal(identity: Identity, stored: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Give the value back; WorkingKeyError when this key did not write it there."""
    start = len(_FORMAT)
    nonce, sealed = stored[start : start + _NONCE_BYTES], stored[start + _NONCE_BYTES :]
    try:
        return json.loads(_cipher().decrypt(nonce, sealed, _bind(identity)))
    except InvalidTag:
        name = " ".join(str(part) for part in identity[1:])
        raise WorkingKeyError(f"{name} was not written with this key") from None


def _cipher() -> AESGCM:
    try:
        return AESGCM(base64.b64decode(settings.FAILSOFT_WORKING_KEY, validate=True))
    except ValueError:
        raise WorkingKeyError("FAILSOFT_WORKING_KEY is not set to a key") from None


def _bind(identity: Identity) -> bytes:
    return json.dumps(identity).encode("ascii")
