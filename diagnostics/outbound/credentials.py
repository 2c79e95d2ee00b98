"""Credentials are references, `env:NAME` or `file:/path`; values are never stored (S26)."""

import os
from pathlib import Path

from diagnostics.redaction.redacting import register_secret


class CredentialError(Exception):
    """The credential cannot be read; the message names the reference."""


def read_credential(reference: str, kind: str) -> str:
    """Return the value behind a reference and have it masked everywhere as `kind`."""
    where, _, name = reference.partition(":")
    if where not in {"env", "file"}:
        raise CredentialError("a credential is given as env:NAME or file:/path")
    value = os.environ.get(name, "") if where == "env" else _read_file(name)
    if not value:
        raise CredentialError(f"the credential {reference} is not set")
    register_secret(value, kind)
    return value


def _read_file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
