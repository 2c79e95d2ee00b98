"""Django's mail settings from FAILSOFT_EMAIL_URL."""

import re
from email.utils import quote
from typing import Any
from urllib.parse import unquote, urlsplit

BACKENDS = {
    "": "django.core.mail.backends.console.EmailBackend",
    "console": "django.core.mail.backends.console.EmailBackend",
    "memory": "django.core.mail.backends.locmem.EmailBackend",
    "file": "django.core.mail.backends.filebased.EmailBackend",
    "smtp": "diagnostics.outbound.smtp.EmailBackend",
    "smtp+tls": "diagnostics.outbound.smtp.EmailBackend",
    "smtps": "diagnostics.outbound.smtp.EmailBackend",
}
# By the usual ports of STARTTLS and TLS.
PORTS = {"smtp+tls": 587, "smtps": 465}
ADDRESS = re.compile(r"[!-;=?-~]+@[^\s@<>]+")
SPECIALS = re.compile(r'[()<>@,:;".\[\]\\]')


def check_mail_url(url: str) -> str:
    """Refuse an address of which a part of the password would be read as something else."""
    parts = urlsplit(url)
    try:
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        has_port = False
    is_mixed_up = parts.path.strip("/") or parts.query or parts.fragment or not has_port
    if parts.scheme.startswith("smtp") and is_mixed_up:
        raise ValueError("cannot be read; write special characters of user and password as %XX")
    return url


def quote_sender(sender: str) -> str:
    """Return `Failsoft, Inc. <alerts@example.org>` with the name quoted where it has to be."""
    name, bracket, rest = sender.strip().rpartition("<")
    name, address = name.strip().removeprefix('"').removesuffix('"'), rest.removesuffix(">").strip()
    if not ADDRESS.fullmatch(address) or bool(bracket) != rest.endswith(">"):
        raise ValueError("must be an address such as Failsoft <alerts@example.org>, in ASCII")
    written = f'"{quote(name)}"' if SPECIALS.search(name) else name
    return f"{written} <{address}>" if name else address


def mail_settings(url: str) -> dict[str, Any]:
    """Return the EMAIL_* settings of an address like `smtp+tls://user:word@host:587`."""
    parts = urlsplit(url)
    return {
        "EMAIL_BACKEND": BACKENDS[parts.scheme],
        "EMAIL_HOST": parts.hostname or "localhost",
        "EMAIL_PORT": parts.port or PORTS.get(parts.scheme, 25),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_FILE_PATH": parts.path if parts.scheme == "file" else None,
        "EMAIL_TIMEOUT": 20,
    }
