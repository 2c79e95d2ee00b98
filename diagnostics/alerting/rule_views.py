"""Alert rules: what is watched, and what the last evaluations found."""

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.alerting.incident_actions import archive_rule
from diagnostics.alerting.incident_records import RuleTotals, totals_by_rule
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.alerting.rule_rows import (
    RuleMinute,
    SliceTotals,
    live_rules,
    minutes_by_rule,
    slices_by_rule,
)
from diagnostics.alerting.wording import DETECTORS, rule_words, scope_words
from diagnostics.web.access import ConsoleRequest, member_action, member_page, require_administrator
from diagnostics.web.charts.marks import Tone
from diagnostics.web.charts.strips import EvaluationMark
from diagnostics.web.pages import respond

MOST_ROWS = 40
Row = dict[str, Any]
NO_SLICES, NO_TOTALS = SliceTotals(), RuleTotals()


def _row(
    rule: AlertRule, slices: SliceTotals, totals: RuleTotals, looks: Iterable[RuleMinute]
) -> Row:
    return {
        "rule": rule,
        "slices": slices,
        "totals": totals,
        "looks": [_mark_of(minute) for minute in looks],
        "badge": _badge(rule, slices),
        "says": rule_words(rule),
        "explained": DETECTORS[rule.detector][1],
        "covers": scope_words(rule.filter),
    }


def _badge(rule: AlertRule, slices: SliceTotals) -> tuple[Tone, str]:
    if not rule.is_enabled:
        return "quiet", "disabled"
    if slices.firing:
        return "bad", f"{slices.firing} firing"
    if not slices.watched:
        return "quiet", "no data"
    return ("warn", "pending") if slices.pending else ("good", "ok")


@member_page
def alert_rules(request: ConsoleRequest) -> HttpResponse:
    """Show the rules of the project with their latest evaluations."""
    project = request.project.pk
    slices, minutes = slices_by_rule(project), minutes_by_rule(project)
    totals = totals_by_rule(project, clock.now())
    rules = sorted(
        live_rules(project).select_related("owner"),
        key=lambda one: (-slices.get(one.pk, NO_SLICES).firing, not one.is_enabled),
    )
    rows = [
        _row(
            one,
            slices.get(one.pk, NO_SLICES),
            totals.get(one.pk, NO_TOTALS),
            minutes.get(one.pk, ()),
        )
        for one in rules[:MOST_ROWS]
    ]
    context = {
        "section": "alert_rules",
        "rows": rows,
        "left_out": max(len(rules) - MOST_ROWS, 0),
        "firing": sum(slices[one.pk].firing for one in rules if one.pk in slices),
    }
    return respond(request, "rules/list", context, "Alert rules")


@member_action
def alert_rule_switch(request: ConsoleRequest, number: int) -> HttpResponse:
    """Enable or disable a rule."""
    row = find_rule(request, number)
    require_administrator(request)
    row.is_enabled = not row.is_enabled
    with transaction.atomic():
        row.save(update_fields=["is_enabled"])
        action = "alert_rule.enabled" if row.is_enabled else "alert_rule.disabled"
        note(request.project.pk, request.user, action, row.name)
    messages.success(request, f"{row.name} {'enabled' if row.is_enabled else 'disabled'}.")
    return redirect("alert_rules")


@member_action
def alert_rule_delete(request: ConsoleRequest, number: int) -> HttpResponse:
    """Delete a rule; what it found stays."""
    row = find_rule(request, number)
    require_administrator(request)
    archive_rule(row, request.user)
    messages.success(request, f"{row.name} deleted. Its incidents are kept.")
    return redirect("alert_rules")


def find_rule(request: ConsoleRequest, number: int) -> AlertRule:
    """Return a rule of the reader's project; any other is not there."""
    return get_object_or_404(live_rules(request.project.pk), pk=number)


def _mark_of(minute: RuleMinute) -> EvaluationMark:
    at = f"{minute.slot:%H:%M} UTC"
    if minute.firing:
        return EvaluationMark("bad", f"{minute.firing} of {minute.looks} series firing", at)
    is_silent = minute.silent == minute.looks
    return EvaluationMark("quiet", "no data", at) if is_silent else EvaluationMark("good", "ok", at)
