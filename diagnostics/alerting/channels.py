"""Channels: their addresses and secrets, sealed or referred to, and what may be shown.

Webhooks are signed by Standard Webhooks 1.0, version `v1` (HMAC-SHA256).
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from diagnostics.alerting.notification_models import Channel
from diagnostics.outbound.credentials import (
    REFERENCE_SCHEMES,
    WorkingKeyError,
    read_credential,
    seal,
    unseal,
)
from diagnostics.redaction.redactor import register_secret

OVERLAP = timedelta(hours=24)
"""For so long the secret before signs as well."""
PREFIX = "whsec_"
SECRET_BYTES = 32


def split_addresses(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def target_of(channel: Channel) -> str:
    """Return the address of a webhook or service; it is masked everywhere from now on.

    CredentialError or WorkingKeyError say why it cannot be read.
    """
    if channel.credential:
        return read_credential(channel.credential, "channel")
    target: str = _open(channel).get("target", "")
    if channel.kind == Channel.Kind.CHAT:
        register_secret(target, "channel")
    return target


def secrets_of(channel: Channel, now: datetime) -> list[str]:
    """Return the secrets that sign, the newest first."""
    kept: list[str] = _open(channel).get("secrets", [])
    is_new = channel.rotated_at is not None and now - channel.rotated_at < OVERLAP
    secrets = kept[: 2 if is_new else 1]
    for secret in secrets:
        register_secret(secret, "webhook_secret")
    return secrets


def keep_target(channel: Channel, target: str) -> None:
    """Seal an address, or note the reference to it; the row is saved by the caller."""
    if target.startswith(REFERENCE_SCHEMES):
        channel.credential, channel.shown = target, target
        return
    channel.credential = ""
    channel.shown = shown_of(target)
    _close(channel, {**_readable(channel), "target": target})


def ensure_secret(channel: Channel, now: datetime) -> str:
    """Return a new secret, shown once, if none can be read; otherwise an empty string."""
    return "" if _readable(channel).get("secrets") else rotate_secret(channel, now)


def rotate_secret(channel: Channel, now: datetime) -> str:
    """Put a new secret before the one in use, and give it: it is shown once.

    WorkingKeyError: another key sealed the address, which would be lost.
    """
    fresh = make_secret(secrets.token_bytes(SECRET_BYTES))
    before = _readable(channel) if channel.credential else _open(channel)
    kept = before.get("secrets", [])[:1]
    _close(channel, {**before, "secrets": [fresh, *kept]})
    channel.rotated_at = now if kept else None
    channel.save(update_fields=["sealed", "rotated_at"])
    register_secret(fresh, "webhook_secret")
    return fresh


def shown_of(target: str) -> str:
    """Return what a page may show of an address: scheme and host of a webhook, no path."""
    parts = urlsplit(target)
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"}:
        return f"{parts.scheme}://…"
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}/…"


def _identity(channel: Channel) -> tuple[int, str, str]:
    return (channel.project_id, "channel", str(channel.uid))


def _open(channel: Channel) -> dict[str, Any]:
    if not channel.sealed:
        return {}
    opened: dict[str, Any] = unseal(_identity(channel), bytes(channel.sealed))
    return opened


def _readable(channel: Channel) -> dict[str, Any]:
    """Return what is sealed; nothing if another key sealed it, so that it can be replaced."""
    try:
        return _open(channel)
    except WorkingKeyError:
        return {}


def _close(channel: Channel, value: dict[str, Any]) -> None:
    channel.sealed = seal(_identity(channel), value)


def make_secret(random: bytes) -> str:
    return PREFIX + base64.b64encode(random).decode()


def sign(secret: str, identity: str, seconds: int, body: bytes) -> str:
    """Sign `id.timestamp.body`; `seconds` are of the Unix epoch."""
    signed = f"{identity}.{seconds}.".encode() + body
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


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
