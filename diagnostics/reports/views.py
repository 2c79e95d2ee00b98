"""Reports: subscriptions, previews, and the archive."""

from collections.abc import Mapping
from datetime import time
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.core.mail import get_connection
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.crypto import get_random_string

from diagnostics import clock
from diagnostics.figures import read_number, write_moment
from diagnostics.outbound.mail import make_message_id, render_html, render_text, unsent_words
from diagnostics.reports.archive import PERSONAL, letter_of, mail_merge_of, preview_of, reports_of
from diagnostics.reports.forms import SubscriptionForm
from diagnostics.reports.models import Report, ReportDelivery, Subscription
from diagnostics.reports.rendering import Letter
from diagnostics.reports.sending import copy_of, personal_values
from diagnostics.reports.subscriptions import (
    MOST_A_PERSON,
    LinkAction,
    pause,
    resume,
    subscribe,
    subscription_of,
    subscriptions_for,
    unsubscribe,
)
from diagnostics.rest.cursors import BadCursorError, Keyset
from diagnostics.web.filter_bar import reader_zone
from diagnostics.web.pages import (
    ConsoleRequest,
    may_administer,
    member_action,
    member_form,
    member_page,
    respond,
)
from diagnostics.web.signed_links import link_page

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; "
    "form-action 'none'; base-uri 'none'; sandbox"
)


def mail_frame(letter: Letter, personal: Mapping[str, str]) -> HttpResponse:
    """Render the HTML part of a report with a policy that allows styles only."""
    response = HttpResponse(render_html("report", _mail_context(letter, personal)))
    response["Content-Security-Policy"] = POLICY
    response["X-Frame-Options"] = "SAMEORIGIN"
    return response


def _mail_context(letter: Letter, personal: Mapping[str, str]) -> dict[str, Any]:
    return {"letter": letter, "personal": personal, "subject": letter.subject, "is_page": True}


LISTED = 25
REPORT_ORDER = Keyset("period_end", "pk", int)
# Bounds the page of an administrator of many recipients.
MOST_ROWS = 50
EIGHT = time(8)


@member_page
def reports(request: ConsoleRequest) -> HttpResponse:
    stored = reports_of(request.project.pk).defer("document")
    try:
        listed, following = REPORT_ORDER.page(stored, LISTED, request.GET.get("before"))
    except BadCursorError:
        raise Http404 from None
    subscriptions = list(_subscriptions(request)[:MOST_ROWS])
    failed, sent = ReportDelivery.State.FAILED, ReportDelivery.State.SENT
    ended = ReportDelivery.objects.filter(subscription__in=subscriptions, state__in=[failed, sent])
    latest = ended.order_by("subscription_id", "-created_at").distinct("subscription_id")
    lost = {delivery.subscription_id: delivery for delivery in latest if delivery.state == failed}
    context = {
        "section": "reports",
        "rows": [(subscription, lost.get(subscription.pk)) for subscription in subscriptions],
        "total": _subscriptions(request).count(),
        "reports": listed,
        "next": following,
        "is_first": not request.GET.get("before"),
        "has_address": bool(getattr(request.user, "email", "")),
    }
    return respond(request, "reports/list", context, "Reports")


@member_form
def report_new(request: ConsoleRequest) -> HttpResponse:
    subscription = Subscription(
        project=request.project,
        zone=reader_zone(request) or "UTC",
        query=request.GET.urlencode(),
        at=EIGHT,
        weekday=0,
        month_day=1,
    )
    if view := read_number(request.GET.get("view")):
        subscription.view_id, subscription.query = view, ""
    return _edit(request, subscription)


@member_form
def report_edit(request: ConsoleRequest, number: int) -> HttpResponse:
    return _edit(request, _subscription(request, number))


@member_action
def report_order(request: ConsoleRequest, number: int) -> HttpResponse:
    subscription = _subscription(request, number)
    match request.POST.get("order"):
        case "pause":
            until = pause(subscription, request.user)
            at = write_moment(until, zone=ZoneInfo(subscription.zone))
            messages.success(request, f"Paused until {at}.")
        case "resume":
            resume(subscription, request.user)
            messages.success(request, "Resumed.")
        case "delete":
            unsubscribe(subscription, request.user)
            messages.success(request, "The report is deleted.")
        case _:
            messages.error(request, "No action was chosen.")
    return redirect("reports")


@member_page
def report_preview(request: ConsoleRequest, number: int) -> HttpResponse:
    subscription = _subscription(request, number)
    letter = Letter(preview_of(subscription))
    values = personal_values(subscription, [], clock.now())
    context = {
        "section": "reports",
        "subscription": subscription,
        "letter": letter,
        "text": render_text("report", _mail_context(letter, values)),
        "may_send": bool(getattr(request.user, "email", "")),
    }
    return respond(request, "reports/preview", context, "Preview")


@member_page
def report_preview_mail(request: ConsoleRequest, number: int) -> HttpResponse:
    subscription = _subscription(request, number)
    values = personal_values(subscription, [], clock.now())
    return mail_frame(Letter(preview_of(subscription)), values)


@member_action
def report_send(request: ConsoleRequest, number: int) -> HttpResponse:
    """Send the preview to the current user only."""
    subscription = _subscription(request, number)
    address = getattr(request.user, "email", "")
    if not address:
        messages.error(request, "Your account has no mail address.")
        return redirect("report_preview", number)
    try:
        mail = mail_merge_of(Letter(preview_of(subscription)))
        message_id = make_message_id(f"preview-{get_random_string(12)}")
        copy = copy_of(mail, subscription, message_id, [], clock.now(), address)
        get_connection().send_messages([copy])
    except Exception as error:  # noqa: BLE001 - mail servers fail in many ways
        messages.error(request, f"Not sent: {type(error).__name__}.")
    else:
        messages.success(request, unsent_words() or f"Sent to {address}.")
    return redirect("report_preview", number)


def _edit(request: ConsoleRequest, subscription: Subscription) -> HttpResponse:
    form = SubscriptionForm(
        request.POST if request.method == "POST" else None,
        instance=subscription,
        person=request.user,
        may_administer=may_administer(request),
    )
    if request.method == "POST" and form.is_valid():
        own = subscriptions_for(request.project.pk, request.user, may_administer=False)
        if subscription.pk is None and own.count() >= MOST_A_PERSON:
            form.add_error(None, f"A person has at most {MOST_A_PERSON} reports.")
        else:
            saved = subscribe(form.filled(request.user), request.user)
            messages.success(request, f"Saved: {saved.when}.")
            return redirect("reports")
    context = {"section": "reports", "form": form, "subscription": subscription}
    return respond(request, "reports/edit", context, "Report")


def _subscription(request: ConsoleRequest, number: int) -> Subscription:
    return get_object_or_404(_subscriptions(request), pk=number)


def _subscriptions(request: ConsoleRequest) -> QuerySet[Subscription]:
    return subscriptions_for(
        request.project.pk, request.user, may_administer=may_administer(request)
    )


NO_RECIPIENT = {**dict.fromkeys(PERSONAL, ""), "why": "This is the archived copy."}


@member_page
def report(request: ConsoleRequest, number: int) -> HttpResponse:
    stored = _report(request, number)
    context = {"section": "reports", "report": stored, "letter": letter_of(stored)}
    return respond(request, "reports/report", context, stored.subject)


@member_page
def report_text(request: ConsoleRequest, number: int) -> HttpResponse:
    letter = letter_of(_report(request, number))
    text = render_text("report", _mail_context(letter, NO_RECIPIENT))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@member_page
def report_mail(request: ConsoleRequest, number: int) -> HttpResponse:
    return mail_frame(letter_of(_report(request, number)), NO_RECIPIENT)


def _report(request: ConsoleRequest, number: int) -> Report:
    return get_object_or_404(reports_of(request.project.pk), pk=number)


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
