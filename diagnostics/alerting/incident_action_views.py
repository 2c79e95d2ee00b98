"""What people do about an incident, on its page or by an acknowledge link."""

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from diagnostics import clock
from diagnostics.alerting import incident_actions as doing
from diagnostics.alerting.ack_links import BadLinkError, read_link
from diagnostics.alerting.incident_actions import acknowledge
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_views import HOURS, find_incident
from diagnostics.alerting.notification_models import Notification
from diagnostics.figures import plural
from diagnostics.redaction.redactor import redact
from diagnostics.web.access import ConsoleRequest, member_view, require_actor

LONGEST_HOURS = HOURS[-1]


@require_POST
@member_view
def acknowledge_incident(request: ConsoleRequest, number: int) -> HttpResponse:
    """Say that somebody is at it: no more reminders, no escalation."""
    row, by = _theirs(request, number)
    if doing.acknowledge(row, by):
        messages.success(request, "Acknowledged: nobody is reminded any more.")
    else:
        messages.info(request, "It was acknowledged or over already.")
    return _back(row)


@require_POST
@member_view
def resolve_incident(request: ConsoleRequest, number: int) -> HttpResponse:
    """End it by hand, and say what it was."""
    row, by = _theirs(request, number)
    try:
        was_open = doing.resolve(row, by, request.POST.get("cause", ""))
    except doing.IncidentError:
        messages.error(request, "Say what it was: choose a cause of the list.")
        return _back(row)
    words = "It is resolved." if was_open else "It was over already; the cause is kept."
    messages.success(request, words)
    return _back(row)


@require_POST
@member_view
def comment_incident(request: ConsoleRequest, number: int) -> HttpResponse:
    """Add a note to the time line."""
    row, by = _theirs(request, number)
    if not doing.comment(row, by, request.POST.get("text", "")):
        messages.error(request, "The note was empty.")
    return _back(row)


@require_POST
@member_view
def assign_incident(request: ConsoleRequest, number: int) -> HttpResponse:
    """Assign it to a member, or to nobody."""
    row, by = _theirs(request, number)
    chosen = request.POST.get("assignee", "")
    members = User.objects.filter(memberships__project=request.project)
    to = members.filter(pk=int(chosen)).first() if _is_number(chosen) else None
    if chosen and to is None:
        messages.error(request, "Choose a member of this project.")
        return _back(row)
    doing.assign(row, by, to)
    return _back(row)


@require_POST
@member_view
def link_incident(request: ConsoleRequest, number: int) -> HttpResponse:
    """Keep the address of its ticket."""
    row, by = _theirs(request, number)
    try:
        doing.link(row, by, request.POST.get("url", ""))
    except doing.IncidentError as error:
        messages.error(request, f"The ticket must be {error}.")
    return _back(row)


@require_POST
@member_view
def silence_incident(request: ConsoleRequest, number: int) -> HttpResponse:
    """Tell nobody of what it touches, for some hours."""
    row, by = _theirs(request, number)
    hours = request.POST.get("hours", "")
    if not _is_number(hours) or not 0 < int(hours) <= LONGEST_HOURS:
        messages.error(request, f"Choose up to {LONGEST_HOURS} hours.")
        return _back(row)
    until = clock.now() + timedelta(hours=int(hours))
    silence = doing.silence_incident(row, by, until)
    silence.reason = redact(request.POST.get("reason", ""), doing.LONGEST_REASON)
    silence.save(update_fields=["reason"])
    span = plural(int(hours), "hour")
    messages.success(request, f"Silenced for {span}; it is still watched.")
    return _back(row)


def _theirs(request: ConsoleRequest, number: int) -> tuple[Incident, User]:
    return find_incident(request, number), require_actor(request)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _back(row: Incident) -> HttpResponse:
    return redirect("incident", row.pk)


GONE = 410


# Who has the link may use it: it is what a cookie would prove elsewhere.
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def acknowledge_link(request: HttpRequest, token: str) -> HttpResponse:
    """Whether to acknowledge; a POST does it, unless the link was used before."""
    try:
        number = read_link(token, clock.now())
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
    done = _use(row)
    return _answer(request, "done" if done else "used", row, status=200 if done else GONE)


@transaction.atomic
def _use(row: Notification) -> bool:
    """Take the link, once, and acknowledge in its name."""
    unused = Notification.objects.filter(pk=row.pk, link_used_at__isnull=True)
    if not unused.update(link_used_at=clock.now()) or row.incident is None:
        return False
    acknowledge(row.incident, None, f"link sent to the channel {row.channel.name}")
    return True


def _answer(
    request: HttpRequest, what: str, row: Notification | None = None, status: int = 200
) -> HttpResponse:
    context = {"what": what, "row": row, "incident": row.incident if row else None}
    answer = render(request, "incidents/acknowledge.html", context, status=status)
    # The address is the permission: it must not go along to where a link leads.
    answer["Referrer-Policy"] = "no-referrer"
    return answer
