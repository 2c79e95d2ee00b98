"""Silences: when nobody is notified, and of what."""

from datetime import datetime, timedelta

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from diagnostics import clock
from diagnostics.alerting.forms import COVERS_ALL, SilenceForm, scope_of
from diagnostics.alerting.incident_actions import end_silence, silence
from diagnostics.alerting.rule_models import Silence
from diagnostics.alerting.rules import SILENCED_BY, watched
from diagnostics.alerting.wording import scope_words
from diagnostics.selection.selection import read_selection
from diagnostics.web.access import ConsoleRequest, member_action, member_page, require_actor
from diagnostics.web.charts.marks import Tone
from diagnostics.web.pages import respond

MOST_SHOWN = 50


def _badge(row: Silence, now: datetime) -> tuple[Tone, str]:
    if row.ends_at <= now:
        return "quiet", "ended"
    return ("live", "active") if row.starts_at <= now else ("quiet", "scheduled")


@member_page
def silences(request: ConsoleRequest) -> HttpResponse:
    selection = read_selection(request.GET.dict())
    text, _ = watched(selection, SILENCED_BY)
    zone = request.session.get("zone", "")
    return _show(request, SilenceForm(request.project.pk, initial={**scope_of(text), "tz": zone}))


@member_action
def silence_create(request: ConsoleRequest) -> HttpResponse:
    by = require_actor(request)
    form = SilenceForm(request.project.pk, request.POST)
    if not form.is_valid() or not (form.scope or COVERS_ALL in request.POST):
        return _show(request, form)
    cleaned = form.cleaned_data
    silence(
        request.project.pk,
        by,
        form.begins_at + timedelta(hours=cleaned["hours"]),
        rule=cleaned["rule"],
        text=cleaned["filter"],
        reason=cleaned["reason"],
        starts_at=form.begins_at,
    )
    messages.success(request, "Silenced: notifications are muted, evaluation continues.")
    return redirect("alert_silences")


@member_action
def silence_end(request: ConsoleRequest, number: int) -> HttpResponse:
    row = get_object_or_404(Silence, project=request.project, pk=number)
    if end_silence(row, require_actor(request)):
        messages.success(request, "Silence ended.")
    return redirect("alert_silences")


def _show(request: ConsoleRequest, form: SilenceForm) -> HttpResponse:
    now = clock.now()
    rows = Silence.objects.filter(project=request.project)
    silences = rows.select_related("rule", "created_by").order_by("-ends_at", "-pk")
    context = {
        "section": "alert_rules",
        "rows": [(row, _badge(row, now), scope_words(row.filter)) for row in silences[:MOST_SHOWN]],
        "now": now,
        "form": form,
        "is_asked": bool(form.scope) or form.is_bound,
    }
    return respond(request, "silences/list", context, "Silences")
