"""Links in report mails: signed, for one subscription and one action, without a login.

A link becomes invalid when its subscription gets a new token, and when it expires.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from diagnostics import clock
from diagnostics.reports.models import Subscription
from diagnostics.reports.subscriptions import pause, unsubscribe


class LinkAction(StrEnum):
    UNSUBSCRIBE = "unsubscribe"
    PAUSE = "pause"


# RFC 8058: unsubscribe links must work for long; a pause is requested from a recent mail.
KEEP = {LinkAction.UNSUBSCRIBE: timedelta(days=400), LinkAction.PAUSE: timedelta(days=60)}


class BadReportLinkError(Exception):
    """this link was not made here, or its time is over"""


def action_url(subscription: Subscription, order: LinkAction, now: datetime) -> str:
    """Return the full address that unsubscribes or pauses a subscription."""
    until = int((now + KEEP[order]).timestamp())
    token = _signer(order).sign(f"{subscription.pk}-{until}-{subscription.token}")
    before, after = _around(f"report_{order}", "token")
    return f"{settings.FAILSOFT_BASE_URL}{before}{token}{after}"


def edit_url(subscription: Subscription) -> str:
    """Return the full address where its reader changes a subscription, signed in."""
    before, after = _around("report_edit", "0")
    return f"{settings.FAILSOFT_BASE_URL}{before}{subscription.pk}{after}"


def read_link(action: LinkAction, token: str, now: datetime) -> Subscription:
    """Return the subscription of a link, or raise BadReportLinkError."""
    try:
        number, seconds, key = _signer(action).unsign(token).split("-")
        until = datetime.fromtimestamp(int(seconds), UTC)
    except (BadSignature, ValueError, OverflowError):
        raise BadReportLinkError(BadReportLinkError.__doc__) from None
    subscriptions = Subscription.objects.filter(pk=int(number), token=key)
    subscription = subscriptions.select_related("project", "view", "user").first()
    if now > until or subscription is None:
        raise BadReportLinkError(BadReportLinkError.__doc__)
    return subscription


@cache
def _around(name: str, mark: str) -> tuple[str, str]:
    """Return the parts of an address around its parameter, to reverse it once only."""
    before, _, after = reverse(name, args=[mark]).partition(mark)
    return before, after


def _signer(order: LinkAction) -> Signer:
    return Signer(salt=f"failsoft.report.{order}", sep=".")


BY = "link in a report mail"


# The link is the credential, in place of a session cookie.
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def report_link(request: HttpRequest, order: LinkAction, token: str) -> HttpResponse:
    """Whether to unsubscribe, or to pause for a week; a POST does it, also a mail program's."""
    try:
        subscription = read_link(order, token, clock.now())
    except BadReportLinkError:
        return _answer(request, order, "bad", None, status=404)
    if subscription.unsubscribed_at is not None:
        return _answer(request, LinkAction.UNSUBSCRIBE, "done", subscription)
    if request.method != "POST":
        return _answer(request, order, "ask", subscription)
    if order is LinkAction.PAUSE:
        pause(subscription, BY)
    else:
        unsubscribe(subscription, BY)
    return _answer(request, order, "done", subscription)


def _answer(
    request: HttpRequest,
    order: LinkAction,
    what: str,
    subscription: Subscription | None,
    status: int = 200,
) -> HttpResponse:
    context = {"order": order.value, "what": what, "subscription": subscription}
    answer = render(request, "reports/order.html", context, status=status)
    # The address is the credential, so it must not leak as a referrer.
    answer["Referrer-Policy"] = "no-referrer"
    return answer
