"""Channels: where alerts go, whether they get through, and what was sent."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Count, Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import date
from django.utils.text import capfirst
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.alerting.channels import ensure_secret, keep_target, rotate_secret, split_addresses
from diagnostics.alerting.notification_facts import Facts
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.notification_rows import queue_alone
from diagnostics.alerting.senders import ACCEPTED, accepted
from diagnostics.alerting.senders.chat_services import (
    ChatAddressError,
    check_address,
    native_scheme,
)
from diagnostics.alerting.wording import DELIVERY_WORDS
from diagnostics.figures import plural
from diagnostics.outbound.addresses import ForbiddenAddressError, choose_target
from diagnostics.outbound.credentials import (
    REFERENCE_SCHEMES,
    CredentialError,
    WorkingKeyError,
    check_reference,
    names_own_setting,
)
from diagnostics.web.edit_forms import EditForm, ZoneField
from diagnostics.web.filter_bar import reader_zone
from diagnostics.web.pages import (
    ConsoleRequest,
    member_action,
    member_page,
    member_view,
    require_actor,
    require_administrator,
    respond,
)

MOST_ADDRESSES = 20
MOST_LOGGED = 50
WEEK_MINUTES = 7 * 24 * 60
CHAT_HELP = "As Slack, Discord, Teams or Google Chat show it; others as in Apprise: pagerduty://…."
REFERENCE = "Or env:NAME or file:/run/secrets/NAME, read by the worker."
UNREADABLE = (
    "The address was encrypted with another FAILSOFT_WORKING_KEY. "
    "Enter the address again in the settings below; the channel gets a new secret then."
)
State = Notification.State


def _address(label: str, help_text: str) -> forms.CharField:
    box = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    return forms.CharField(
        label=label, required=False, max_length=1000, help_text=help_text, widget=box
    )


class ChannelForm(EditForm, forms.ModelForm):  # type: ignore[type-arg] # plain at run time
    """Fields of a channel; each kind has an address of its own, since it may be secret."""

    optional = (
        *("quiet_from", "quiet_to", "zone", "renotify_minutes", "escalate_after_minutes"),
        *("escalate_to", "has_canary"),
    )
    usual = (None, "", False, "UTC")
    email = _address("Email addresses", "Separated by commas.")
    webhook = _address("Webhook URL", f"An https:// URL. {REFERENCE}")
    chat = _address("Service URL", f"{CHAT_HELP} {REFERENCE}")

    class Meta:
        model = Channel
        fields = [
            *("name", "kind", "min_severity", "quiet_from", "quiet_to", "zone", "digest_above"),
            *("renotify_minutes", "escalate_after_minutes", "escalate_to", "has_canary"),
        ]
        field_classes = {"zone": ZoneField}
        labels = {
            "min_severity": "Minimum severity",
            "quiet_from": "Quiet hours from",
            "quiet_to": "Quiet hours until",
            "zone": "Time zone",
            "digest_above": "Digest above (per hour)",
            "renotify_minutes": "Re-notify every (min)",
            "escalate_after_minutes": "Escalate after (min)",
            "escalate_to": "Escalate to",
            "has_canary": "Daily test message",
        }
        help_texts = {
            "zone": "Of its messages and its quiet hours.",
            "quiet_to": "Alerts are held, and sent afterwards if still active.",
            "renotify_minutes": "Until acknowledged. Empty: never.",
            "escalate_after_minutes": "If not acknowledged. Empty: never.",
        }
        widgets = {
            "quiet_from": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
            "quiet_to": forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = Channel.objects.filter(project_id=self.instance.project_id)
        chosen, kind = self.fields["escalate_to"], self.fields["kind"]
        assert isinstance(chosen, forms.ModelChoiceField)  # noqa: S101 - it is one
        assert isinstance(kind, forms.ChoiceField)  # noqa: S101 - it is one
        chosen.queryset = others.exclude(pk=self.instance.pk)
        chosen.empty_label = "No escalation"
        kind.choices = [(value, capfirst(label)) for value, label in Channel.Kind.choices]
        if not self.is_bound and not self.instance.pk and self.instance.zone == "UTC":
            self.fields["zone"].widget.attrs["data-own-zone"] = ""
        if self.instance.pk:
            kind.disabled = True
            is_mail = self.instance.kind == Channel.Kind.EMAIL
            address = self.fields[self.instance.kind]
            address.initial = self.instance.shown if is_mail or self.instance.credential else ""
            if not is_mail:
                address.help_text = f"{address.help_text} Empty: unchanged."

    @property
    def addresses(self) -> list[forms.BoundField]:
        """The boxes of addresses; a channel keeps its kind."""
        kinds = [self.instance.kind] if self.instance.pk else list(Channel.Kind)
        return [self[kind] for kind in kinds]

    @property
    def target(self) -> str:
        kind = self.cleaned_data.get("kind") or self.instance.kind
        return str(self.cleaned_data.get(kind) or "").strip()

    def clean_name(self) -> str:
        name = " ".join(str(self.cleaned_data["name"]).split())
        taken = Channel.objects.filter(project_id=self.instance.project_id, name=name)
        if taken.exclude(pk=self.instance.pk).exists():
            raise ValidationError("A channel with this name exists.")
        return name

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        kind = cleaned.get("kind") or self.instance.kind
        if kind and (self.target or not self.instance.pk or kind == Channel.Kind.EMAIL):
            self._check_target(str(kind), self.target)
        if (cleaned.get("quiet_from") is None) != (cleaned.get("quiet_to") is None):
            self.add_error("quiet_to", "Set both ends of the quiet hours, or none.")
        elif cleaned.get("quiet_from") and cleaned["quiet_from"] == cleaned["quiet_to"]:
            self.add_error("quiet_to", "Choose another time than the beginning.")
        if bool(cleaned.get("escalate_to")) != bool(cleaned.get("escalate_after_minutes")):
            self.add_error("escalate_to", "Set both: after how long, and to which channel.")
        for name in ("renotify_minutes", "escalate_after_minutes"):
            if (cleaned.get(name) or 0) > WEEK_MINUTES:
                self.add_error(name, f"At most a week: {WEEK_MINUTES:,} minutes.")
        return cleaned

    def _check_target(self, kind: str, target: str) -> None:
        try:
            check_target(kind, target)
        except ValidationError as error:
            self.add_error(kind, error)
        except (ChatAddressError, CredentialError, ForbiddenAddressError) as error:
            self.add_error(kind, f"{capfirst(str(error))}.")


def check_target(kind: str, target: str) -> None:
    """Look at the form of an address; where it leads is looked at whenever it is used.

    Raises ValidationError, ChatAddressError, CredentialError or ForbiddenAddressError.
    """
    if kind == Channel.Kind.EMAIL:
        addresses = split_addresses(target)
        if not 0 < len(addresses) <= MOST_ADDRESSES:
            raise ValidationError(f"Enter 1 to {MOST_ADDRESSES} addresses, separated by commas.")
        # It refuses lines that would end a header, too.
        for address in addresses:
            validate_email(address)
    elif target.startswith(REFERENCE_SCHEMES):
        if names_own_setting(target):
            raise ValidationError("Settings of this installation cannot be used as addresses.")
        check_reference(target)
    elif kind == Channel.Kind.CHAT:
        check_address(target)
    elif native_scheme(target):
        raise ValidationError(
            "This service takes no signed webhooks: use a chat or paging service."
        )
    else:
        choose_target(target, allow_private=True, resolve=lambda host, port: ["192.0.2.1"])


@member_page
def channels(request: ConsoleRequest) -> HttpResponse:
    unseen = Q(notifications__state=State.FAILED, notifications__seen_at=None)
    rows = Channel.objects.filter(project=request.project).annotate(
        waiting=Count("notifications", filter=Q(notifications__state=State.QUEUED), distinct=True),
        failed=Count("notifications", filter=unseen, distinct=True),
    )
    context = {"section": "alert_rules", "rows": rows.order_by("name")}
    return respond(request, "channels/list", context, "Channels")


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("webhook", "chat")
@member_view
def new(request: ConsoleRequest) -> HttpResponse:
    require_administrator(request)
    row = Channel(project=request.project, zone=reader_zone(request) or "UTC")
    form = ChannelForm(request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            form.instance.created_by_id = request.user.pk
            secret = _save(form)
            note(request.project.pk, request.user, "channel.created", row.name)
        if secret:
            return _show(request, row, ChannelForm(instance=row), secret)
        messages.success(request, f"{row.name} created. Send a test to verify it.")
        return redirect("alert_channel", row.pk)
    return respond(request, "channels/new", {"section": "alert_rules", "form": form}, "New channel")


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters("webhook", "chat")
@member_view
def channel(request: ConsoleRequest, number: int) -> HttpResponse:
    row = find_channel(request, number)
    form = ChannelForm(request.POST or None, instance=row)
    if request.method == "POST":
        require_administrator(request)
        if form.is_valid():
            with transaction.atomic():
                secret = _save(form)
                note(request.project.pk, request.user, "channel.changed", row.name)
            if secret:
                return _show(request, row, ChannelForm(instance=row), secret)
            messages.success(request, f"{row.name} saved.")
            return redirect("alert_channel", row.pk)
    return _show(request, find_channel(request, number), form)


@member_action
def test(request: ConsoleRequest, number: int) -> HttpResponse:
    """Send a test through the worker; the log tells what was answered."""
    row = find_channel(request, number)
    require_administrator(request)
    facts = Facts(
        reason="test",
        project=request.project.name,
        at=clock.now(),
        note=f"{request.user.get_username()} requested this test. Nothing is wrong.",
    )
    with transaction.atomic():
        queue_alone(row, facts)
        note(request.project.pk, request.user, "channel.tested", row.name)
    messages.info(request, "Test queued; the result appears below.")
    return redirect("alert_channel", row.pk)


@member_action
def switch(request: ConsoleRequest, number: int) -> HttpResponse:
    """Enable or disable a channel; what is queued stays."""
    row = find_channel(request, number)
    require_administrator(request)
    row.enabled = bool(request.POST.get("enabled"))
    with transaction.atomic():
        row.save(update_fields=["enabled"])
        action = "channel.enabled" if row.enabled else "channel.disabled"
        note(request.project.pk, request.user, action, row.name)
    messages.success(request, f"{row.name} {'enabled' if row.enabled else 'disabled'}.")
    return redirect("alert_channel", row.pk)


@member_action
def rotate(request: ConsoleRequest, number: int) -> HttpResponse:
    """Make a new secret, shown on this page only; the one before signs for a day."""
    row = find_channel(request, number)
    require_administrator(request)
    if row.kind != Channel.Kind.WEBHOOK:
        raise Http404
    # A reload sends the form again, and a third secret would end the one that receivers have.
    if request.POST.get("rotated", "") != date(row.rotated_at, "U"):
        messages.info(request, "Not replaced again. The new secret was shown once.")
        return redirect("alert_channel", row.pk)
    try:
        with transaction.atomic():
            secret = rotate_secret(row, clock.now())
            note(request.project.pk, request.user, "channel.secret_rotated", row.name)
    except WorkingKeyError:
        messages.error(request, UNREADABLE)
        return redirect("alert_channel", row.pk)
    return _show(request, row, ChannelForm(instance=row), secret)


@member_action
def delete(request: ConsoleRequest, number: int) -> HttpResponse:
    row = find_channel(request, number)
    require_administrator(request)
    with transaction.atomic():
        note(request.project.pk, request.user, "channel.deleted", row.name)
        row.delete()
    messages.success(request, f"{row.name} deleted.")
    return redirect("alert_channels")


@member_action
def failures_seen(request: ConsoleRequest) -> HttpResponse:
    """Take the banner down: somebody has looked at what was given up."""
    require_actor(request)
    rows = Notification.objects.filter(project=request.project, state=State.FAILED, seen_at=None)
    with transaction.atomic():
        count = rows.update(seen_at=clock.now())
        if count:
            target = plural(count, "notification")
            note(request.project.pk, request.user, "notification.failure_seen", target)
    return redirect("alert_channels")


@member_action
def retry_notification(request: ConsoleRequest, number: int) -> HttpResponse:
    """Queue a notification that was given up once more, under the same key."""
    require_actor(request)
    rows = Notification.objects.filter(project=request.project, pk=number, state=State.FAILED)
    row = get_object_or_404(rows)
    now = clock.now()
    # Who has it is not sent it again, and who has refused it is asked again.
    receipts = dict.fromkeys(accepted(row.receipts), ACCEPTED)
    # A digest that was not tried yet collects; its channel may have another one that does.
    tries = int(row.reason == Notification.Reason.DIGEST)
    with transaction.atomic():
        rows.update(
            state=State.QUEUED, tries=tries, next_attempt_at=now, seen_at=now, receipts=receipts
        )
        note(request.project.pk, request.user, "notification.again", f"#{number}")
    messages.info(request, "Queued again.")
    return redirect("alert_channel", row.channel_id)


def find_channel(request: ConsoleRequest, number: int) -> Channel:
    rows = Channel.objects.select_related("escalate_to", "created_by")
    return get_object_or_404(rows, project=request.project, pk=number)


def _show(
    request: ConsoleRequest, row: Channel, form: ChannelForm, secret: str = ""
) -> HttpResponse:
    log = row.notifications.select_related("incident").order_by("-created_at", "-pk")
    entries = list(log[:MOST_LOGGED])
    context = {
        "section": "alert_rules",
        "channel": row,
        "log": [(entry, DELIVERY_WORDS[entry.state]) for entry in entries],
        "is_moving": any(entry.state == State.QUEUED for entry in entries[:3]),
        "most": MOST_LOGGED,
        "form": form,
        "secret": secret,
    }
    return respond(request, "channels/channel", context, row.name)


def _save(form: ChannelForm) -> str:
    """Save a channel; return the signing secret that had to be made, to be shown once."""
    row: Channel = form.save(commit=False)
    target = form.target
    if row.kind == Channel.Kind.EMAIL:
        row.shown = ", ".join(split_addresses(target))
        if row.failing_since is None:
            row.last_error = ""
    elif target:
        keep_target(row, target)
    row.save()
    is_hook = target and row.kind == Channel.Kind.WEBHOOK
    return ensure_secret(row, clock.now()) if is_hook else ""
