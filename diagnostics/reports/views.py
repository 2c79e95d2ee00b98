"""Reports: subscriptions and their form, previews, and the archive."""

from collections.abc import Mapping
from datetime import time
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import messages
from django.core.mail import get_connection
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.crypto import get_random_string

from diagnostics import clock
from diagnostics.accounts.models import Person, SavedView
from diagnostics.figures import read_number, write_moment
from diagnostics.outbound.mail import make_message_id, render_html, render_text, unsent_words
from diagnostics.redaction.redactor import SecretTypedError, refuse_secret
from diagnostics.reports.archive import PERSONAL, letter_of, mail_merge_of, preview_of, reports_of
from diagnostics.reports.models import (
    DAYS,
    Cadence,
    Report,
    ReportDelivery,
    Subscription,
    read_filter,
)
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
from diagnostics.selection.query_language import write_query
from diagnostics.selection.selection import read_selection
from diagnostics.web.edit_forms import EditForm, ZoneField
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


LONGEST_FILTER = 500


class SubscriptionForm(EditForm, forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    """A report to oneself; administrators may name an external address."""

    view = forms.ModelChoiceField(
        SavedView.objects.none(),
        label="Saved view",
        required=False,
        empty_label="the project, or the filter",
    )
    filter = forms.CharField(
        label="Filter",
        required=False,
        max_length=LONGEST_FILTER,
        help_text="Without a saved view, as in the filter bar: model:haiku -env:dev",
    )
    cadence = forms.ChoiceField(
        label="Frequency",
        choices=[
            (Cadence.DAILY, "Every day"),
            (Cadence.WEEKDAYS, "Monday to Friday"),
            (Cadence.WEEKLY, "Every week"),
            (Cadence.MONTHLY, "Every month"),
        ],
    )
    weekday = forms.TypedChoiceField(
        label="Weekday",
        choices=list(enumerate(DAYS)),
        coerce=int,
        required=False,
        empty_value=None,
        help_text="Of weekly reports.",
    )
    month_day = forms.IntegerField(
        label="Day of the month",
        min_value=1,
        max_value=31,
        required=False,
        help_text="Of monthly reports; the last day in shorter months.",
    )
    at = forms.TimeField(label="At", widget=forms.TimeInput({"type": "time"}, "%H:%M"))
    zone = ZoneField(
        label="Time zone",
        max_length=64,
        help_text="Such as Europe/Berlin. Days begin at its midnight.",
    )
    address = forms.EmailField(
        label="Send to", required=False, help_text="Any address; empty: your own."
    )
    only_when_changed = forms.BooleanField(label="Only if something changed", required=False)

    class Meta:
        model = Subscription
        fields = [
            *("view", "cadence", "weekday", "month_day", "at", "zone"),
            *("address", "only_when_changed"),
        ]

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        instance: Subscription,
        person: Person,
        may_administer: bool,
    ) -> None:
        super().__init__(data, instance=instance)
        views: Any = self.fields["view"]
        views.queryset = SavedView.open_to(instance.project_id, person)
        self.fields["filter"].initial = read_filter(instance.query)
        if data is None and not instance.pk and instance.zone == "UTC":
            # The zone is unknown here; the browser fills it in.
            self.fields["zone"].widget.attrs["data-own-zone"] = ""
        if not may_administer or (instance.pk and instance.user_id):
            del self.fields["address"]

    def clean_filter(self) -> str:
        selection = read_selection({"q": self.cleaned_data["filter"]})
        if "q" in selection.faults:
            raise forms.ValidationError(selection.faults["q"])
        try:
            return refuse_secret(write_query(selection.text))
        except SecretTypedError as error:
            raise forms.ValidationError("The filter contains what looks like a secret.") from error

    def clean(self) -> dict[str, Any]:
        """Keep only the day that belongs to the cadence."""
        fields: dict[str, Any] = super().clean() or {}
        cadence = fields.get("cadence")
        day, month_day = fields.get("weekday") or 0, fields.get("month_day") or 1
        fields["weekday"] = day if cadence == Cadence.WEEKLY else None
        fields["month_day"] = month_day if cadence == Cadence.MONTHLY else None
        return fields

    def filled(self, person: Person) -> Subscription:
        """Return the subscription as the form has it; it is not saved."""
        subscription: Subscription = self.save(commit=False)
        text = self.cleaned_data.get("filter", "")
        subscription.query = urlencode({"q": text}) if text else ""
        if not subscription.address and subscription.user is None:
            subscription.user_id = person.pk
        elif subscription.address:
            subscription.user = None
        return subscription


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
