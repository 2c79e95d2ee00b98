"""Alert rules: what is watched, and what the last looks found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.alerting.incident_actions import archive_rule
from diagnostics.alerting.incident_records import Noise, noise_by_rule
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.alerting.rule_rows import (
    RuleMinute,
    SliceTotals,
    live_rules,
    minutes_by_rule,
    slices_by_rule,
)
from diagnostics.alerting.wording import DETECTORS, EXPLAINED, SEVERITIES, SIGNALS
from diagnostics.figures import duration, percent, plural
from diagnostics.web.access import ConsoleRequest, member_view, require_administrator
from diagnostics.web.charts.marks import Tone
from diagnostics.web.charts.strips import EvaluationMark
from diagnostics.web.pages import respond

NOISE_SPAN = timedelta(days=30)
MOST_ROWS = 40
NO_SLICES, NO_NOISE = SliceTotals(), Noise(0, 0)


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule as a line of the table."""

    rule: AlertRule
    slices: SliceTotals
    noise: Noise
    looks: Sequence[EvaluationMark]

    @property
    def badge(self) -> tuple[Tone, str]:
        """How it stands."""
        if not self.rule.is_enabled:
            return "quiet", "off"
        if self.slices.firing:
            return "bad", f"{self.slices.firing} firing"
        return ("warn", "pending") if self.slices.pending else ("good", "quiet")

    @property
    def severity(self) -> tuple[Tone, str]:
        """How bad its incidents are."""
        return SEVERITIES[self.rule.severity]

    @property
    def says(self) -> str:
        """What it does, in one line."""
        return rule_words(self.rule)

    @property
    def explained(self) -> str:
        """How its detector judges."""
        return EXPLAINED[self.rule.detector]

    @property
    def covers(self) -> Sequence[tuple[str, str]]:
        """The calls that it is about, field by field."""
        return parse_qsl(self.rule.filter)


@require_safe
@member_view
def alert_rules(request: ConsoleRequest) -> HttpResponse:
    """Show the rules of the project with their latest looks."""
    project = request.project.pk
    slices, minutes = slices_by_rule(project), minutes_by_rule(project)
    noise = noise_by_rule(project, clock.now() - NOISE_SPAN)
    rows = [
        RuleRow(
            one,
            slices.get(one.pk, NO_SLICES),
            noise.get(one.pk, NO_NOISE),
            [_look(minute) for minute in minutes.get(one.pk, ())],
        )
        for one in live_rules(project)
    ]
    rows.sort(key=lambda row: (-row.slices.firing, not row.rule.is_enabled))
    context = {
        "section": "alert_rules",
        "rows": rows[:MOST_ROWS],
        "left_out": max(len(rows) - MOST_ROWS, 0),
        "firing": sum(row.slices.firing for row in rows),
    }
    return respond(request, "rules/list", context, "Alert rules")


@require_POST
@member_view
def alert_rule_switch(request: ConsoleRequest, number: int) -> HttpResponse:
    """Switch a rule on or off."""
    row = find_rule(request, number)
    require_administrator(request)
    row.is_enabled = not row.is_enabled
    with transaction.atomic():
        row.save(update_fields=["is_enabled"])
        action = "alert_rule.enabled" if row.is_enabled else "alert_rule.disabled"
        note(request.project.pk, request.user, action, row.name)
    messages.success(request, f"{row.name} is {'on' if row.is_enabled else 'off'}.")
    return redirect("alert_rules")


@require_POST
@member_view
def alert_rule_delete(request: ConsoleRequest, number: int) -> HttpResponse:
    """Delete a rule; what it found stays."""
    row = find_rule(request, number)
    require_administrator(request)
    archive_rule(row, request.user)
    messages.success(request, f"{row.name} is deleted; its incidents stay.")
    return redirect("alert_rules")


def find_rule(request: ConsoleRequest, number: int) -> AlertRule:
    """Return a rule of the reader's project; any other is not there."""
    return get_object_or_404(live_rules(request.project.pk), pk=number)


def rule_words(rule: AlertRule) -> str:
    """Say what a rule does in one line."""
    figures: Mapping[str, Any] = rule.parameters
    told = f"{SIGNALS[rule.signal]}, {DETECTORS[rule.detector]}"
    if rule.detector == "count":
        within = duration(figures.get("seconds", 0))
        told = f"{SIGNALS[rule.signal]}: {figures.get('count', 0):g} or more in {within}"
    elif rule.detector == "threshold":
        limit = figures.get("limit", 0)
        is_time = rule.signal == "latency_p95"
        told = f"{SIGNALS[rule.signal]} beyond {f'{limit:,.0f} ms' if is_time else percent(limit)}"
    elif rule.detector == "burn":
        told = f"{SIGNALS[rule.signal]}: a budget of {percent(figures.get('budget', 0))}"
    elif rule.detector == "absent":
        told = f"{SIGNALS[rule.signal]} for {duration(figures.get('seconds', 0))}"
    by = ", ".join(rule.group_by)
    return f"{told}; a slice for each {by}" if by else told


def _look(minute: RuleMinute) -> EvaluationMark:
    at = f"{minute.slot:%H:%M} UTC"
    if minute.firing:
        return EvaluationMark(
            "bad", f"{plural(minute.firing, 'slice')} of {minute.looks} firing", at
        )
    is_silent = minute.silent == minute.looks
    return (
        EvaluationMark("quiet", "no calls", at)
        if is_silent
        else EvaluationMark("good", "quiet", at)
    )
