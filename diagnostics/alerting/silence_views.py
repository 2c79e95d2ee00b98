"""Silences and maintenance windows: when nobody is notified, and of what."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.alerting.form_fields import (
    COVERS_ALL,
    LocalTimeField,
    ScopeForm,
    ZoneField,
    scope_of,
)
from diagnostics.alerting.incident_actions import end_silence, silence
from diagnostics.alerting.rule_rows import live_rules
from diagnostics.alerting.rules import SILENCED_BY, watched
from diagnostics.alerting.silence_models import MaintenanceWindow, Silence
from diagnostics.alerting.silences import Repeats
from diagnostics.alerting.wording import scope_words
from diagnostics.redaction.fields import RedactedFormField
from diagnostics.selection.selection import read_selection
from diagnostics.web.access import ConsoleRequest, member_view, require_actor
from diagnostics.web.charts.marks import Tone
from diagnostics.web.pages import respond

LONGEST = timedelta(days=30)


class SilenceForm(ScopeForm):
    """What is silenced, and for how long."""

    hours = forms.IntegerField(label="Duration (h)", min_value=1, max_value=24 * 30, initial=4)
    reason = forms.CharField(max_length=200, required=False)

    def __init__(self, project_id: int, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's
        super().__init__(project_id, *args, **kwargs)
        self.fields["rule"] = forms.ModelChoiceField(
            live_rules(project_id), required=False, empty_label="All rules"
        )


class MaintenanceForm(ScopeForm):
    """Planned work, once or again and again."""

    name = RedactedFormField(max_length=200)
    starts_at = LocalTimeField(label="From")
    ends_at = LocalTimeField(label="Until")
    zone = ZoneField(label="Time zone", max_length=64, initial="UTC")
    repeats = forms.ChoiceField(choices=[(one.value, one.value.capitalize()) for one in Repeats])

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's
        # Beside the form of a silence on one page: ids of its own.
        super().__init__(*args, **{"auto_id": "plan_%s", **kwargs})

    def clean(self) -> dict[str, Any]:
        """Read the times in their zone; the end comes after the beginning."""
        told: dict[str, Any] = super().clean() or {}
        zone = ZoneInfo(str(told.get("zone") or "UTC"))
        times: dict[str, datetime] = {
            name: told[name].replace(tzinfo=zone)
            for name in ("starts_at", "ends_at")
            if name in told
        }
        told |= times
        if len(times) == 2:
            begin, end = times.values()
            if not begin < end <= begin + LONGEST:
                self.add_error("ends_at", "After the start, at most 30 days.")
        return told

    def window(self) -> dict[str, Any]:
        """Return the columns of a maintenance window."""
        names = ("name", "filter", "starts_at", "ends_at", "zone", "repeats")
        return {name: self.cleaned_data[name] for name in names}


MOST_SHOWN = 50


def _badge(row: Silence, now: datetime) -> tuple[Tone, str]:
    if row.ends_at <= now:
        return "quiet", "ended"
    return ("live", "active") if row.starts_at <= now else ("quiet", "scheduled")


@require_safe
@member_view
def silences(request: ConsoleRequest) -> HttpResponse:
    """Show what is silenced, what is planned, and a form for each."""
    selection = read_selection(request.GET.dict())
    text, _ = watched(selection, SILENCED_BY)
    form = SilenceForm(request.project.pk, initial=scope_of(text))
    return _show(request, form, MaintenanceForm(request.project.pk))


@require_POST
@member_view
def silence_create(request: ConsoleRequest) -> HttpResponse:
    """Silence some calls for some hours."""
    by = require_actor(request)
    form = SilenceForm(request.project.pk, request.POST)
    if not form.is_valid() or not (form.scope or COVERS_ALL in request.POST):
        return _show(request, form, MaintenanceForm(request.project.pk))
    told = form.cleaned_data
    until = clock.now() + timedelta(hours=told["hours"])
    silence(
        request.project.pk, by, until, rule=told["rule"], text=told["filter"], reason=told["reason"]
    )
    messages.success(request, "Silenced: notifications are muted, evaluation continues.")
    return redirect("alert_silences")


@require_POST
@member_view
def silence_end(request: ConsoleRequest, number: int) -> HttpResponse:
    """End a silence now."""
    row = get_object_or_404(Silence, project=request.project, pk=number)
    if end_silence(row, require_actor(request)):
        messages.success(request, "Silence ended.")
    return redirect("alert_silences")


@require_POST
@member_view
def maintenance_create(request: ConsoleRequest) -> HttpResponse:
    """Schedule a window without notifications."""
    by = require_actor(request)
    form = MaintenanceForm(request.project.pk, request.POST)
    if not form.is_valid():
        return _show(request, SilenceForm(request.project.pk), form)
    with transaction.atomic():
        row = MaintenanceWindow.objects.create(
            project=request.project, created_by=by, **form.window()
        )
        note(request.project.pk, by, "maintenance.created", row.name)
    messages.success(request, f"{row.name} scheduled.")
    return redirect("alert_silences")


@require_POST
@member_view
def maintenance_delete(request: ConsoleRequest, number: int) -> HttpResponse:
    """Delete a maintenance window."""
    row = get_object_or_404(MaintenanceWindow, project=request.project, pk=number)
    by = require_actor(request)
    with transaction.atomic():
        note(request.project.pk, by, "maintenance.deleted", row.name)
        row.delete()
    return redirect("alert_silences")


def _show(request: ConsoleRequest, form: SilenceForm, plan: MaintenanceForm) -> HttpResponse:
    now = clock.now()
    rows = Silence.objects.filter(project=request.project)
    found = rows.select_related("rule", "created_by").order_by("-ends_at", "-pk")
    windows = MaintenanceWindow.objects.filter(project=request.project)
    context = {
        "section": "alert_rules",
        "rows": [(one, _badge(one, now), scope_words(one.filter)) for one in found[:MOST_SHOWN]],
        "windows": [
            (one, scope_words(one.filter))
            for one in windows.select_related("created_by").order_by("-starts_at")
        ],
        "now": now,
        "form": form,
        "plan": plan,
        "is_asked": bool(form.scope) or form.is_bound,
    }
    return respond(request, "silences/list", context, "Silences")
