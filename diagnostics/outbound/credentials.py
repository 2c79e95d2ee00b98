"""Credentials are references, `env:NAME` or `file:/path`; values are never stored (S26)."""

import os
import re
import stat
from pathlib import Path

from django.conf import settings

from diagnostics.redaction.redacting import register_secret

MAX_FILE_BYTES = 64 * 1024
REFERENCE_SCHEMES = ("env:", "file:")
_OWN_SETTING = re.compile(r"env:(FAILSOFT_|CCOS_|ROBOPPI_|DATABASE_URL|BROKER_URL)")


class CredentialError(Exception):
    """The credential cannot be read; the message names the reference."""


def read_credential(reference: str, kind: str) -> str:
    """Return the value behind a reference and have it masked everywhere as `kind`.

    A file is a regular one of at most 64 KiB below a folder of FAILSOFT_SECRET_DIRS.
    """
    if not reference.startswith(REFERENCE_SCHEMES):
        raise CredentialError("a credential is given as env:NAME or file:/path")
    where, _, name = reference.partition(":")
    value = os.environ.get(name, "") if where == "env" else _read_file(Path(name))
    if not value:
        raise CredentialError(f"the credential {reference} is not set")
    register_secret(value, kind)
    return value


def check_reference(reference: str) -> None:
    """Refuse a file outside of FAILSOFT_SECRET_DIRS, by CredentialError."""
    where, _, name = reference.partition(":")
    if where == "file" and not _is_inside(Path(os.path.normpath(name))):
        folders = ", ".join(settings.FAILSOFT_SECRET_DIRS)
        raise CredentialError(f"a credential's file lies in {folders}")


def names_own_setting(reference: str) -> bool:
    """Whether a reference leads to a setting of this installation."""
    return _OWN_SETTING.match(reference) is not None


def _read_file(path: Path) -> str:
    """Return the text of a file, empty when there is none."""
    check_reference(f"file:{path}")
    try:
        # Secrets of Kubernetes are symbolic links, to a file of the same folder.
        real = path.resolve(strict=True)
        check_reference(f"file:{real}")
        # O_NONBLOCK: opening a pipe must not wait for a writer.
        opened = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise CredentialError(f"the credential file:{path} is no regular file")
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
