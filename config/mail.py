"""Django's mail settings from FAILSOFT_EMAIL_URL."""

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


def mail_settings(url: str) -> dict[str, Any]:
    """Return the EMAIL_* settings of an address like `smtp+tls://user:word@host:587`."""
    parts = urlsplit(url)
    return {
        "EMAIL_BACKEND": BACKENDS[parts.scheme],
        "EMAIL_HOST": parts.hostname or "localhost",
        "EMAIL_PORT": parts.port or 25,
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_FILE_PATH": parts.path if parts.scheme == "file" else None,
        "EMAIL_TIMEOUT": 20,
    }
