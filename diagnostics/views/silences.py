"""Silences and maintenance windows: when nobody is told, and of what."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import parse_qsl

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from diagnostics import clock
from diagnostics.access.auditing import note
from diagnostics.alerts.incidents import end_silence, silence
from diagnostics.core.alerting.rules import watched
from diagnostics.core.charts.mark import Tone
from diagnostics.core.selection import read_selection
from diagnostics.forms.silence import MaintenanceForm, SilenceForm
from diagnostics.models import MaintenanceWindow, Silence
from diagnostics.views.access import ConsoleRequest, may_act, member_view
from diagnostics.views.pages import respond

MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Row:
    """A silence as a line of the table."""

    silence: Silence
    now: datetime

    @property
    def badge(self) -> tuple[Tone, str]:
        """Whether it holds."""
        if self.silence.ends_at <= self.now:
            return "quiet", "over"
        return ("live", "holds") if self.silence.starts_at <= self.now else ("quiet", "later")

    @property
    def holds(self) -> bool:
        """Whether it can be ended."""
        return self.silence.ends_at > self.now

    @property
    def covers(self) -> Sequence[tuple[str, str]]:
        """What it covers, field by field."""
        return parse_qsl(self.silence.filter)


@require_safe
@member_view
def silences(request: ConsoleRequest) -> HttpResponse:
    """Show what is silenced, what is planned, and a form for each."""
    selection = read_selection(request.GET.dict())
    text, _ = watched(selection)
    form = SilenceForm(request.project.pk, initial={"filter": text})
    return _show(request, form, MaintenanceForm())


@require_POST
@member_view
def silence_create(request: ConsoleRequest) -> HttpResponse:
    """Keep some calls quiet for some hours."""
    _require_operator(request)
    form = SilenceForm(request.project.pk, request.POST)
    if not form.is_valid():
        return _show(request, form, MaintenanceForm())
    told = form.cleaned_data
    until = clock.now() + timedelta(hours=told["hours"])
    silence(
        request.project.pk,
        _user(request),
        until,
        rule=told["rule"],
        text=told["filter"],
        reason=told["reason"],
    )
    messages.success(request, "Nobody is told of these calls; they are still watched.")
    return redirect("alert_silences")


@require_POST
@member_view
def silence_end(request: ConsoleRequest, number: int) -> HttpResponse:
    """End a silence now."""
    row = Silence.objects.filter(project=request.project, pk=number).first()
    if row is None:
        raise Http404
    _require_operator(request)
    if end_silence(row, _user(request)):
        messages.success(request, "The silence is over.")
    return redirect("alert_silences")


@require_POST
@member_view
def maintenance_create(request: ConsoleRequest) -> HttpResponse:
    """Plan a window in which nobody is told."""
    _require_operator(request)
    form = MaintenanceForm(request.POST)
    if not form.is_valid():
        return _show(request, SilenceForm(request.project.pk), form)
    with transaction.atomic():
        row = MaintenanceWindow.objects.create(
            project=request.project, created_by=_user(request), **form.cleaned_data
        )
        note(request.project.pk, request.user, "maintenance.created", row.name)
    messages.success(request, f"{row.name} is planned.")
    return redirect("alert_silences")


@require_POST
@member_view
def maintenance_delete(request: ConsoleRequest, number: int) -> HttpResponse:
    """Take a maintenance window out."""
    row = MaintenanceWindow.objects.filter(project=request.project, pk=number).first()
    if row is None:
        raise Http404
    _require_operator(request)
    with transaction.atomic():
        note(request.project.pk, request.user, "maintenance.deleted", row.name)
        row.delete()
    return redirect("alert_silences")


def _show(request: ConsoleRequest, form: SilenceForm, plan: MaintenanceForm) -> HttpResponse:
    now = clock.now()
    rows = Silence.objects.filter(project=request.project)
    found = rows.select_related("rule", "created_by").order_by("-ends_at", "-pk")
    windows = MaintenanceWindow.objects.filter(project=request.project)
    context = {
        "section": "alert_rules",
        "rows": [Row(one, now) for one in found[:MOST_SHOWN]],
        "windows": [
            (one, parse_qsl(one.filter))
            for one in windows.select_related("created_by").order_by("-starts_at")
        ],
        "now": now,
        "form": form,
        "plan": plan,
        "is_asked": bool(form.initial.get("filter")) or form.is_bound,
        "may_act": may_act(request),
    }
    return respond(request, "silences/list", context)


def _require_operator(request: ConsoleRequest) -> None:
    if not may_act(request):
        raise PermissionDenied


def _user(request: ConsoleRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - member_view let them in
    return request.user
