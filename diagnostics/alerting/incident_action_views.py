"""What people do about an incident, on its page or by an acknowledge link."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from diagnostics import clock
from diagnostics.alerting import incident_actions as actions
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_records import MOST_SHOWN
from diagnostics.alerting.incident_views import HOURS
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.senders.messages import ACKNOWLEDGE
from diagnostics.figures import plural, read_number
from diagnostics.verdict.ratings import OUTDATED, mark_verdict
from diagnostics.web.pages import ConsoleRequest, member_action, own_page, require_actor
from diagnostics.web.signed_links import BadLinkError, link_page, read_link

LONGEST_HOURS = HOURS[-1]


def _action(
    act: Callable[[ConsoleRequest, Incident, User], None],
) -> Callable[[ConsoleRequest, int], HttpResponse]:
    """Let whoever may act do something about an incident, and lead back to where it was done."""

    @member_action
    @wraps(act)
    def view(request: ConsoleRequest, number: int) -> HttpResponse:
        row = actions.incident_of(request.project.pk, number)
        act(request, row, require_actor(request))
        page = reverse("incident", args=[row.pk])
        return redirect(own_page(request, request.POST.get("next", ""), page))

    return view


@_action
def acknowledge_incident(request: ConsoleRequest, row: Incident, by: User) -> None:
    if actions.acknowledge(row, by):
        messages.success(request, "Acknowledged: reminders stop.")
    else:
        messages.info(request, "Already acknowledged or resolved.")


@_action
def resolve_incident(request: ConsoleRequest, row: Incident, by: User) -> None:
    try:
        was_open = actions.resolve(row, by, request.POST.get("cause", ""))
    except actions.IncidentError:
        messages.error(request, "Choose a cause from the list.")
        return
    words = "Resolved." if was_open else "Already resolved; the cause is saved."
    messages.success(request, words)


@_action
def rate_incident(request: ConsoleRequest, row: Incident, by: User) -> None:
    if not mark_verdict(row.project_id, request.POST, by):
        messages.error(request, OUTDATED)


@_action
def comment_incident(request: ConsoleRequest, row: Incident, by: User) -> None:
    if not actions.comment(row, by, request.POST.get("text", "")):
        messages.error(request, "The note was empty.")


@_action
def assign_incident(request: ConsoleRequest, row: Incident, by: User) -> None:
    chosen = request.POST.get("assignee", "")
    members = User.objects.filter(memberships__project=request.project)
    to = members.filter(pk=read_number(chosen) or 0).first()
    if chosen and to is None:
        messages.error(request, "Choose a member of this project.")
        return
    actions.assign(row, by, to)


@_action
def link_incident(request: ConsoleRequest, row: Incident, by: User) -> None:
    try:
        actions.link(row, by, request.POST.get("url", ""))
    except actions.IncidentError as error:
        messages.error(request, f"The ticket must be {error}.")


@_action
def silence_incident(request: ConsoleRequest, row: Incident, by: User) -> None:
    _silence(request, [row], by)


def _silence(request: ConsoleRequest, rows: Sequence[Incident], by: User) -> None:
    hours = read_number(request.POST.get("hours")) or 0
    if not 0 < hours <= LONGEST_HOURS:
        messages.error(request, f"Choose up to {LONGEST_HOURS} hours.")
        return
    until = clock.now() + timedelta(hours=hours)
    for row in rows:
        actions.silence_incident(row, by, until, request.POST.get("reason", ""))
    messages.success(request, f"Silenced for {plural(hours, 'hour')}; evaluation continues.")


def _acknowledge(request: ConsoleRequest, rows: Sequence[Incident], by: User) -> None:
    changed = sum(actions.acknowledge(row, by) for row in rows)
    if changed:
        messages.success(request, f"{plural(changed, 'incident')} acknowledged: reminders stop.")
    else:
        messages.info(request, "Already acknowledged or resolved.")


BULK = {"acknowledge": _acknowledge, "silence": _silence}


@member_action
def act_on_incidents(request: ConsoleRequest) -> HttpResponse:
    by = require_actor(request)
    ids = [read_number(text) or 0 for text in request.POST.getlist("id")[:MOST_SHOWN]]
    rows = Incident.objects.filter(project=request.project, pk__in=ids, cleared_at=None)
    act = BULK.get(request.POST.get("verb", ""))
    if act is None or not (chosen := list(rows.order_by("pk"))):
        messages.warning(request, "Select at least one open incident, and an action.")
    else:
        act(request, chosen, by)
    return redirect(own_page(request, request.POST.get("next", ""), reverse("incidents")))


GONE = 410


@link_page
def acknowledge_link(request: HttpRequest, token: str) -> HttpResponse:
    """Whether to acknowledge; a POST does it, unless the link was used before."""
    try:
        number, _ = read_link(ACKNOWLEDGE, token, clock.now())
    except BadLinkError:
        return _answer(request, "bad", status=404)
    rows = Notification.objects.select_related("incident", "channel", "project")
    row = rows.filter(pk=number, incident__isnull=False).first()
    if row is None or row.incident is None:
        return _answer(request, "bad", status=404)
    if row.link_used_at is not None:
        return _answer(request, "used", row, status=GONE)
    if row.incident.cleared_at is not None:
        return _answer(request, "over", row)
    if row.incident.acknowledged_at is not None:
        return _answer(request, "known", row)
    if request.method != "POST":
        return _answer(request, "ask", row)
    with transaction.atomic():
        # It works once, and acknowledges in its own name.
        unused = Notification.objects.filter(pk=row.pk, link_used_at__isnull=True)
        if not unused.update(link_used_at=clock.now()):
            return _answer(request, "used", row, status=GONE)
        actions.acknowledge(row.incident, f"link sent to the channel {row.channel.name}")
    return _answer(request, "done", row)


def _answer(
    request: HttpRequest, what: str, row: Notification | None = None, status: int = 200
) -> HttpResponse:
    incident = row.incident if row else None
    verdict = incident.latest_verdict.told if incident else None
    sentence = verdict and verdict.parts
    context = {"what": what, "row": row, "incident": incident, "sentence": sentence}
    # No script knows the zone here: the channel's is what the mail was written in.
    with timezone.override(ZoneInfo(row.channel.zone) if row else None):
        return render(request, "incidents/acknowledge.html", context, status=status)
