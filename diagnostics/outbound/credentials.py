"""Credentials: references that are read when needed, and values that are sealed."""

import base64
import json
import os
import re
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from diagnostics.redaction.redactor import register_secret

MAX_FILE_BYTES = 64 * 1024
REFERENCE_SCHEMES = ("env:", "file:")
_OWN_SETTING = re.compile(r"env:(FAILSOFT_|CCOS_|ROBOPPI_|DATABASE_URL|BROKER_URL)")


class CredentialError(Exception):
    """The credential cannot be read; the message names the reference."""


def read_credential(reference: str, kind: str) -> str:
    """Return the value of a reference, and register it to be masked as `kind`.

    A file must be a regular one of at most 64 KiB below a folder of FAILSOFT_SECRET_DIRS.
    """
    if not reference.startswith(REFERENCE_SCHEMES):
        raise CredentialError("a credential must be env:NAME or file:/path")
    scheme, _, name = reference.partition(":")
    value = os.environ.get(name, "") if scheme == "env" else _read_file(Path(name))
    if not value:
        raise CredentialError(f"the credential {reference} is not set")
    register_secret(value, kind)
    return value


def check_reference(reference: str) -> None:
    """Refuse a file outside of FAILSOFT_SECRET_DIRS, by CredentialError."""
    where, _, name = reference.partition(":")
    if where == "file" and not _is_inside(Path(os.path.normpath(name))):
        folders = ", ".join(settings.FAILSOFT_SECRET_DIRS)
        raise CredentialError(f"a credential file must be in {folders}")


def names_own_setting(reference: str) -> bool:
    """Whether a reference leads to a setting of this installation."""
    return _OWN_SETTING.match(reference) is not None


def _read_file(path: Path) -> str:
    check_reference(f"file:{path}")
    try:
        # Secrets of Kubernetes are symbolic links, to a file of the same folder.
        real = path.resolve(strict=True)
        check_reference(f"file:{real}")
        # O_NONBLOCK: opening a pipe must not wait for a writer.
        opened = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise CredentialError(f"the credential file:{path} is not a regular file")
            value = file.read(MAX_FILE_BYTES + 1)
        if len(value) > MAX_FILE_BYTES:
            raise CredentialError(
                f"the credential file:{path} has more than {MAX_FILE_BYTES} bytes"
            )
        return value.decode().strip()
    except (OSError, ValueError):
        return ""


def _is_inside(path: Path) -> bool:
    folders = map(Path, settings.FAILSOFT_SECRET_DIRS)
    return any(folder in path.parents or folder.resolve() in path.parents for folder in folders)


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
    """Open a sealed value; WorkingKeyError when this key did not write it there."""
    start = len(_FORMAT)
    nonce, sealed = stored[start : start + _NONCE_BYTES], stored[start + _NONCE_BYTES :]
    try:
        return json.loads(_cipher().decrypt(nonce, sealed, _bind(identity)))
    except InvalidTag:
        name = " ".join(str(part) for part in identity[1:])
        raise WorkingKeyError(f"{name} was encrypted with another FAILSOFT_WORKING_KEY") from None


def _cipher() -> AESGCM:
    try:
        return AESGCM(base64.b64decode(settings.FAILSOFT_WORKING_KEY, validate=True))
    except ValueError:
        raise WorkingKeyError("FAILSOFT_WORKING_KEY is not set to a key") from None


def _bind(identity: Identity) -> bytes:
    return json.dumps(identity).encode("ascii")
