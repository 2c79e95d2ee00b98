"""Links in report mails: signed, for one subscription and one thing, without signing in.

A link ends when its subscription gets a new token, and after its time.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.urls import reverse

from diagnostics.models import Subscription


class Order(StrEnum):
    """What a link does."""

    UNSUBSCRIBE = "unsubscribe"
    PAUSE = "pause"


# RFC 8058: to unsubscribe must work for long; a pause is asked for with the mail at hand.
KEEP = {Order.UNSUBSCRIBE: timedelta(days=400), Order.PAUSE: timedelta(days=60)}


class BadReportLinkError(Exception):
    """this link was not made here, or its time is over"""


def order_url(subscription: Subscription, order: Order, now: datetime) -> str:
    """Give the full address that unsubscribes or pauses a subscription."""
    until = int((now + KEEP[order]).timestamp())
    token = _signer(order).sign(f"{subscription.pk}-{until}-{subscription.token}")
    before, after = _around(f"report_{order}", "token")
    return f"{settings.FAILSOFT_BASE_URL}{before}{token}{after}"


def edit_url(subscription: Subscription) -> str:
    """Give the full address where its reader changes a subscription, signed in."""
    before, after = _around("report_edit", "0")
    return f"{settings.FAILSOFT_BASE_URL}{before}{subscription.pk}{after}"


def read_order(order: Order, token: str, now: datetime) -> Subscription:
    """Give the subscription that a link was made for, or raise BadReportLinkError."""
    try:
        number, seconds, key = _signer(order).unsign(token).split("-")
        until = datetime.fromtimestamp(int(seconds), UTC)
    except (BadSignature, ValueError, OverflowError):
        raise BadReportLinkError(BadReportLinkError.__doc__) from None
    known = Subscription.objects.filter(pk=int(number), token=key)
    found = known.select_related("project", "view", "user").first()
    if now > until or found is None:
        raise BadReportLinkError(BadReportLinkError.__doc__)
    return found


@cache
def _around(name: str, mark: str) -> tuple[str, str]:
    """Give an address around its parameter: to look it up for every reader costs more."""
    before, _, after = reverse(name, args=[mark]).partition(mark)
    return before, after


def _signer(order: Order) -> Signer:
    return Signer(salt=f"failsoft.report.{order}", sep=".")
