"""Channels: where alerts go, whether they get through, and what was sent."""

from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.alerting.channel_form import ChannelForm
from diagnostics.alerting.channels import keep_target, rotate_secret, split_addresses
from diagnostics.alerting.notification_facts import Facts
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.notification_rows import queue_alone
from diagnostics.alerting.senders import ACCEPTED, accepted
from diagnostics.alerting.wording import DELIVERY_WORDS
from diagnostics.web.access import (
    ConsoleRequest,
    member_action,
    member_page,
    member_view,
    require_actor,
    require_administrator,
)
from diagnostics.web.filter_bar import reader_zone
from diagnostics.web.pages import respond

MOST_LOGGED = 50
State = Notification.State


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
def channel_new(request: ConsoleRequest) -> HttpResponse:
    require_administrator(request)
    row = Channel(project=request.project, zone=reader_zone(request) or "UTC")
    form = ChannelForm(request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            form.instance.created_by_id = request.user.pk
            row = _save(form)
            secret = ""
            if row.kind == Channel.Kind.WEBHOOK:
                secret = rotate_secret(row, clock.now())
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
    """Show one channel with its log; change it."""
    row = find_channel(request, number)
    form = ChannelForm(request.POST or None, instance=row)
    if request.method == "POST":
        require_administrator(request)
        if form.is_valid():
            with transaction.atomic():
                _save(form)
                note(request.project.pk, request.user, "channel.changed", row.name)
            messages.success(request, f"{row.name} saved.")
            return redirect("alert_channel", row.pk)
    return _show(request, find_channel(request, number), form)


@member_action
def channel_test(request: ConsoleRequest, number: int) -> HttpResponse:
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
def channel_switch(request: ConsoleRequest, number: int) -> HttpResponse:
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
def channel_rotate(request: ConsoleRequest, number: int) -> HttpResponse:
    """Make a new secret, shown on this page only; the one before signs for a day."""
    row = find_channel(request, number)
    require_administrator(request)
    if row.kind != Channel.Kind.WEBHOOK:
        raise Http404
    with transaction.atomic():
        secret = rotate_secret(row, clock.now())
        note(request.project.pk, request.user, "channel.secret_rotated", row.name)
    return _show(request, row, ChannelForm(instance=row), secret)


@member_action
def channel_delete(request: ConsoleRequest, number: int) -> HttpResponse:
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
            target = f"{count} notifications"
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
    """Return a channel of the reader's project; any other is not there."""
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


def _save(form: ChannelForm) -> Channel:
    row: Channel = form.save(commit=False)
    target = form.target
    if row.kind == Channel.Kind.EMAIL:
        row.shown = ", ".join(split_addresses(target))
        if row.failing_since is None:
            row.last_error = ""
    elif target:
        keep_target(row, target)
    row.save()
    return row
