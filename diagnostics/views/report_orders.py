"""Links of report mails: unsubscribe and pause, without signing in (RFC 8058).

Scanners of mail open every link: looking changes nothing, only a POST does.
"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from diagnostics import clock
from diagnostics.models import Subscription
from diagnostics.reports.links import BadReportLinkError, Order, read_order
from diagnostics.reports.subscriptions import (
    cadence_words,
    pause,
    title_of,
    unsubscribe,
)

BY = "link in a report mail"


# Who has the link may use it: it is what a cookie would prove elsewhere.
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def report_unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether to unsubscribe; a POST does it, also a mail program's."""
    return _obey(request, Order.UNSUBSCRIBE, token)


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def report_pause(request: HttpRequest, token: str) -> HttpResponse:
    """Ask whether to pause for a week; a POST does it."""
    return _obey(request, Order.PAUSE, token)


def _obey(request: HttpRequest, order: Order, token: str) -> HttpResponse:
    try:
        subscription = read_order(order, token, clock.now())
    except BadReportLinkError:
        return _answer(request, order, "bad", None, status=404)
    if subscription.unsubscribed_at is not None:
        return _answer(request, Order.UNSUBSCRIBE, "done", subscription)
    if request.method != "POST":
        return _answer(request, order, "ask", subscription)
    if order is Order.PAUSE:
        pause(subscription, BY)
    else:
        unsubscribe(subscription, BY)
    return _answer(request, order, "done", subscription)


def _answer(
    request: HttpRequest,
    order: Order,
    what: str,
    subscription: Subscription | None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "order": order.value,
        "what": what,
        "subscription": subscription,
        "title": title_of(subscription) if subscription else "",
        "when": cadence_words(subscription) if subscription else "",
    }
    answer = render(request, "reports/order.html", context, status=status)
    # The address is the permission: it must not go along to where a link leads.
    answer["Referrer-Policy"] = "no-referrer"
    return answer
