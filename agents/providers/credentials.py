"""Credentials are references, `env:NAME` or `file:/path`; values are never stored (S26)."""

import os
from pathlib import Path

from agents.providers.base import RefusedCallError
from diagnostics.redacting import register_secret


class CredentialError(RefusedCallError):
    """the credential of a provider cannot be read; the message names the reference"""


def read_credential(reference: str) -> str | None:
    """Return the value behind a reference and have it masked everywhere; None for no reference."""
    if not reference:
        return None
    kind, _, name = reference.partition(":")
    value = os.environ.get(name, "") if kind == "env" else _read_file(kind, name)
    if not value:
        raise CredentialError(f"the credential {reference} is not set")
    register_secret(value, "provider_key")
    return value


def _read_file(kind: str, name: str) -> str:
    if kind != "file":
        raise CredentialError("a credential is given as env:NAME or file:/path")
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
