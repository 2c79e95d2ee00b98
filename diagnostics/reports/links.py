"""Links in report mails: signed, for one subscription and one action, without a login.

A link becomes invalid when its subscription gets a new token, and when it expires.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from diagnostics import clock
from diagnostics.reports.models import Subscription
from diagnostics.reports.subscriptions import pause, unsubscribe
from diagnostics.web.signed_links import BadLinkError, link_page, read_link, sign_link


class LinkAction(StrEnum):
    UNSUBSCRIBE = "unsubscribe"
    PAUSE = "pause"


# RFC 8058: unsubscribe links must work for long; a pause is requested from a recent mail.
KEEP = {LinkAction.UNSUBSCRIBE: timedelta(days=400), LinkAction.PAUSE: timedelta(days=60)}


def action_url(subscription: Subscription, order: LinkAction, now: datetime) -> str:
    """Return the full address that unsubscribes or pauses a subscription."""
    until = now + KEEP[order]
    token = sign_link(f"report.{order}", subscription.pk, until, subscription.token)
    before, after = _around(f"report_{order}", "token")
    return f"{settings.FAILSOFT_BASE_URL}{before}{token}{after}"


def edit_url(subscription: Subscription) -> str:
    """Return the full address where its reader changes a subscription, signed in."""
    before, after = _around("report_edit", "0")
    return f"{settings.FAILSOFT_BASE_URL}{before}{subscription.pk}{after}"


def subscription_of(action: LinkAction, token: str, now: datetime) -> Subscription | None:
    """Return the subscription of a link; None if the link is not, or no longer, valid."""
    try:
        number, key = read_link(f"report.{action}", token, now)
    except BadLinkError:
        return None
    subscriptions = Subscription.objects.filter(pk=number, token=key)
    return subscriptions.select_related("project", "view", "user").first()


@cache
def _around(name: str, mark: str) -> tuple[str, str]:
    """Return the parts of an address around its parameter, to reverse it once only."""
    before, _, after = reverse(name, args=[mark]).partition(mark)
    return before, after


BY = "link in a report mail"


@link_page
def report_link(request: HttpRequest, order: LinkAction, token: str) -> HttpResponse:
    """Whether to unsubscribe, or to pause for a week; a POST does it, also a mail program's."""
    subscription = subscription_of(order, token, clock.now())
    if subscription is None:
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
    return render(request, "reports/order.html", context, status=status)
