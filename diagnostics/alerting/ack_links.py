"""Links that acknowledge an incident without signing in: signed, for a week, once."""

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.urls import reverse

from diagnostics.alerting.notification_models import Notification

KEEP = timedelta(days=7)
REASONS = frozenset({"fired", "worsened", "reminder", "escalated"})


class BadLinkError(Exception):
    """this link was not made here, or its time is over"""


def acknowledge_url(row: Notification) -> str:
    """Return the link of a notification; empty where there is nothing to acknowledge.

    The same row gives the same link, whenever it is sent.
    """
    if row.incident_id is None or row.reason not in REASONS:
        return ""
    return f"{settings.FAILSOFT_BASE_URL}{reverse('acknowledge_link', args=[_token(row)])}"


def read_link(token: str, now: datetime) -> int:
    """Return the number of the notification that a link was made for, or BadLinkError."""
    try:
        number, seconds = _signer().unsign(token).split("-")
        until = datetime.fromtimestamp(int(seconds), UTC)
    except (BadSignature, ValueError, OverflowError):
        raise BadLinkError(BadLinkError.__doc__) from None
    if now > until:
        raise BadLinkError(BadLinkError.__doc__)
    return int(number)


def _token(row: Notification) -> str:
    until = int((row.created_at + KEEP).timestamp())
    return _signer().sign(f"{row.pk}-{until}")


def _signer() -> Signer:
    return Signer(salt="failsoft.acknowledge", sep=".")
