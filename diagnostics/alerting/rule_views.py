"""Alert rules and silences: what is watched and muted, and when a rule would have fired."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.alerting.backtests import DAYS, BackTest, WouldFire, back_test
from diagnostics.alerting.forms import COVERS_ALL, RuleForm, SilenceForm, initial_of, scope_of
from diagnostics.alerting.incident_actions import archive_rule, end_alerts, end_silence, silence
from diagnostics.alerting.incident_records import RuleTotals, totals_by_rule
from diagnostics.alerting.past import UntestableError
from diagnostics.alerting.rule_models import AlertRule, Silence, live_rules
from diagnostics.alerting.rule_rows import (
    JUDGED,
    RuleError,
    RuleMinute,
    SliceTotals,
    change_rule,
    create_rule,
    given_of,
    minutes_by_rule,
    slices_by_rule,
)
from diagnostics.alerting.rules import DETECTORS as ABLE
from diagnostics.alerting.rules import SILENCED_BY, USUAL, RuleFields, more_scope, watched
from diagnostics.alerting.signals import Signal
from diagnostics.alerting.wording import DETECTORS, rule_words, scope_words, slice_words
from diagnostics.figures import Tone
from diagnostics.selection.selection import read_selection
from diagnostics.web.charts.strips import EvaluationMark, fires
from diagnostics.web.filter_bar import read_filters
from diagnostics.web.pages import (
    ConsoleRequest,
    member_action,
    member_form,
    member_page,
    own_page,
    require_actor,
    require_administrator,
    respond,
    user_of,
)

MOST_ROWS, SILENCES_SHOWN = 40, 50
MOST_FIRES = 20
ANYWAY = "anyway"
"""In a form: its reader has seen that the rule would have fired most of the time."""
TEST = "test"
"""In the address: the page comes with its back-test."""


def _row(
    rule: AlertRule, slices: SliceTotals, totals: RuleTotals, looks: Iterable[RuleMinute]
) -> dict[str, Any]:
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
    project = request.project.pk
    slices, minutes = slices_by_rule(project), minutes_by_rule(project)
    totals = totals_by_rule(project, clock.now())
    rules = sorted(
        live_rules(project).select_related("owner"),
        key=lambda rule: (-slices[rule.pk].firing, not rule.is_enabled),
    )
    rows = [
        _row(rule, slices[rule.pk], totals[rule.pk], minutes[rule.pk]) for rule in rules[:MOST_ROWS]
    ]
    context = {
        "section": "alert_rules",
        "rows": rows,
        "left_out": max(len(rules) - MOST_ROWS, 0),
        "firing": sum(slices[rule.pk].firing for rule in rules),
    }
    return respond(request, "rules/list", context, "Alert rules")


@member_action
def alert_rule_switch(request: ConsoleRequest, number: int) -> HttpResponse:
    row = find_rule(request, number)
    require_administrator(request)
    row.is_enabled = bool(request.POST.get("enabled"))
    with transaction.atomic():
        row.save(update_fields=["is_enabled"])
        if not row.is_enabled:
            end_alerts(row)
        action = "alert_rule.enabled" if row.is_enabled else "alert_rule.disabled"
        note(request.project.pk, request.user, action, row.name)
    words = "enabled" if row.is_enabled else "disabled: its open alerts end"
    messages.success(request, f"{row.name} {words}.")
    return redirect("alert_rules")


@member_action
def alert_rule_delete(request: ConsoleRequest, number: int) -> HttpResponse:
    row = find_rule(request, number)
    require_administrator(request)
    archive_rule(row, request.user)
    messages.success(request, f"{row.name} deleted. Its incidents are kept.")
    return redirect("alert_rules")


def find_rule(request: ConsoleRequest, number: int) -> AlertRule:
    return get_object_or_404(live_rules(request.project.pk), pk=number)


def _mark_of(minute: RuleMinute) -> EvaluationMark:
    at = f"{minute.slot:%H:%M} UTC"
    if minute.firing:
        return EvaluationMark("bad", f"{minute.firing} of {minute.looks} series firing", at)
    is_silent = minute.silent == minute.looks
    return EvaluationMark("quiet", "no data", at) if is_silent else EvaluationMark("good", "ok", at)


@member_form
def alert_rule(request: ConsoleRequest, number: int | None = None) -> HttpResponse:
    """Show a rule with its back-test, or a new one for what a page was narrowed to; save it."""
    row = None if number is None else find_rule(request, number)
    form = _form(request, row)
    if request.method == "POST":
        require_administrator(request)
        is_asked = form.is_valid() and "save" in request.POST
        is_asked = is_asked and bool(form.scope or COVERS_ALL in request.POST)
        if is_asked and not _is_noisy(request, form, row) and _save(request, form, row):
            return redirect(own_page(request, request.GET.get("next", ""), reverse("alert_rules")))
    return _show(request, form, row)


@member_page
def alert_rule_test(request: ConsoleRequest, number: int | None = None) -> HttpResponse:
    """Answer htmx with the back-test alone; anybody else goes to its page."""
    row = None if number is None else find_rule(request, number)
    if not request.htmx or request.htmx.history_restore_request:
        query = urlencode([*request.GET.items(), (TEST, "1")])
        return redirect(f"{_address(row)}?{query}")
    context = {"days": DAYS, **_tried(request, _form(request, row), row)}
    return respond(request, "rules/_found", context)


def _is_noisy(request: ConsoleRequest, form: RuleForm, row: AlertRule | None) -> bool:
    """Whether the page has to say first that the rule would have fired most of the time."""
    fields = form.given()
    if ANYWAY in request.POST or (row and all(getattr(row, n) == fields.get(n) for n in JUDGED)):
        return False
    try:
        return bool(back_test(request.project.pk, fields, clock.now()).mostly_firing)
    except (RuleError, UntestableError):
        return False


def _form(request: ConsoleRequest, row: AlertRule | None) -> RuleForm:
    initial = _beginning(request) if row is None else initial_of(row)
    form = RuleForm(request.project.pk, request.POST or None, initial=initial)
    form.instance = row
    return form


def _beginning(request: ConsoleRequest) -> dict[str, Any]:
    """Begin with a threshold: changes are watched without a rule."""
    named = request.GET.get("signal")
    signal = Signal(named) if named in list(Signal) else USUAL["signal"]
    able = ABLE[signal]
    detector = request.GET.get("detector") or ("threshold" if "threshold" in able else able[0])
    text, _ = watched(read_filters(request), more_scope(signal, detector))
    name = ", ".join(value for _, value in parse_qsl(text))
    return {
        "name": f"{name}: {signal.words}" if name else "",
        **scope_of(text),
        "group_by": RuleFields.model_fields["group_by"].default,
        "signal": signal,
        "detector": detector,
    }


def _save(request: ConsoleRequest, form: RuleForm, row: AlertRule | None) -> bool:
    by = user_of(request)
    try:
        if row is None:
            row = create_rule(request.project.pk, form.given(), by, by.pk)
            words = "is evaluated from the next minute on"
        else:
            row, words = change_rule(row, form.given(), by), "saved"
    except RuleError as error:
        form.add_faults(error.faults)
        return False
    messages.success(request, f"{row.name} {words}.")
    return True


def _show(request: ConsoleRequest, form: RuleForm, row: AlertRule | None) -> HttpResponse:
    left_out: Sequence[str] = ()
    if row is None:
        more = more_scope(form.initial["signal"], form.initial["detector"])
        left_out = watched(read_filters(request), more)[1]
    context = {
        "section": "alert_rules",
        "form": form,
        "rule": row,
        "left_out": left_out,
        "explained": [(name, *words) for name, words in DETECTORS.items()],
        "days": DAYS,
    }
    if row is not None:
        context["totals"] = totals_by_rule(request.project.pk, clock.now())[row.pk]
        context["firing"] = slices_by_rule(request.project.pk)[row.pk].firing
    is_asked = form.is_bound or TEST in request.GET
    if is_asked:
        context |= _tried(request, form, row)
    else:
        # The page answers without the back-test, which takes longer.
        parameters = [(k, v) for k, values in request.GET.lists() for v in values]
        context["test_at"] = f"{_address(row, '_test')}?{urlencode(parameters)}"
        context["asked"] = parameters
    return respond(request, "rules/rule", context, row.name if row else "New rule")


def _address(row: AlertRule | None, of: str = "") -> str:
    if row is None:
        return reverse(f"alert_rule_new{of}")
    return reverse(f"alert_rule{of}", args=[row.pk])


def _tried(request: ConsoleRequest, form: RuleForm, row: AlertRule | None) -> dict[str, Any]:
    """Say when the rule of the form would have fired; nothing while the form is wrong."""
    fields, now = _given(form, row), clock.now()
    if fields is None:
        return {}
    try:
        result = back_test(request.project.pk, fields, now)
    except RuleError as error:
        if form.is_bound:
            form.add_faults(error.faults)
        return {}
    except UntestableError as error:
        return {"untestable": str(error)}
    return {
        "days": DAYS,
        "test": result,
        "fires": [_fire_row(fire, result) for fire in result.fires[:MOST_FIRES]],
        "left_out_fires": max(len(result.fires) - MOST_FIRES, 0),
        "fired_slices": len({slice_words(fire.slice) for fire in result.fires}),
        "bars": fires(
            [(fire.at, fire.cleared) for fire in result.fires], result.since, result.until
        ),
    }


def _given(form: RuleForm, row: AlertRule | None) -> dict[str, Any] | None:
    if form.is_bound:
        return form.given() if form.is_valid() else None
    if row is not None:
        return given_of(row)
    initial = {k: v for k, v in form.initial.items() if k in RuleFields.model_fields}
    return {**initial, "filter": form.text, "name": "back-test"}


def _fire_row(fire: WouldFire, test: BackTest) -> dict[str, Any]:
    end = fire.cleared or test.until
    window = {"from": fire.onset.isoformat(), "to": end.isoformat()}
    values = {k: "-" if v is None else v for k, v in fire.slice.items()}
    return {
        "at": fire.at,
        "words": slice_words(fire.slice),
        "lasted": end - fire.at if fire.cleared else None,
        "k": fire.k,
        "n": fire.n,
        "query": urlencode({**window, **values}),
    }


def _silence_badge(row: Silence, now: datetime) -> tuple[Tone, str]:
    if row.ends_at <= now:
        return "quiet", "ended"
    return ("live", "active") if row.starts_at <= now else ("quiet", "scheduled")


@member_page
def silences(request: ConsoleRequest) -> HttpResponse:
    selection = read_selection(request.GET.dict())
    text, _ = watched(selection, SILENCED_BY)
    zone = request.session.get("zone", "")
    return _show_silences(
        request, SilenceForm(request.project.pk, initial={**scope_of(text), "tz": zone})
    )


@member_action
def silence_create(request: ConsoleRequest) -> HttpResponse:
    by = require_actor(request)
    form = SilenceForm(request.project.pk, request.POST)
    if not form.is_valid() or not (form.scope or COVERS_ALL in request.POST):
        return _show_silences(request, form)
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


def _show_silences(request: ConsoleRequest, form: SilenceForm) -> HttpResponse:
    now = clock.now()
    rows = Silence.objects.filter(project=request.project)
    silences = rows.select_related("rule", "created_by").order_by("-ends_at", "-pk")
    context = {
        "section": "alert_rules",
        "rows": [
            (row, _silence_badge(row, now), scope_words(row.filter))
            for row in silences[:SILENCES_SHOWN]
        ],
        "now": now,
        "form": form,
        "is_asked": bool(form.scope) or form.is_bound,
    }
    return respond(request, "silences/list", context, "Silences")
