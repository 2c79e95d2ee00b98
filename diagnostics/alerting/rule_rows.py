"""Rules as rows: those out of the box, and what people make of their own."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Max, OuterRef, Q, QuerySet, Subquery

from diagnostics import clock
from diagnostics.accounts.audit_log import Actor, note
from diagnostics.accounts.models import Project
from diagnostics.alerting.rule_models import LONGEST_SECONDS, AlertRule, AlertState, Evaluation
from diagnostics.alerting.rules import (
    STANDARD,
    FilterError,
    ParametersError,
    RuleDefinition,
    check_filter,
    check_parameters,
    make_rule,
)
from diagnostics.alerting.severity import Severity
from diagnostics.alerting.states import ON, NoData
from diagnostics.redaction.redactor import SecretTypedError, redact, refuse_secret
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.selection import FaultsError

EVALUATED = (
    "name",
    "filter",
    "group_by",
    "signal",
    "detector",
    "parameters",
    "severity",
    "for_seconds",
    "clear_seconds",
    "no_data",
    "no_data_seconds",
    "is_latching",
)
COLUMNS = ("id", "version", *EVALUATED)
JUDGED = ("filter", "group_by", "signal", "detector", "parameters")
"""What changes the meaning of evaluations: the version grows with it."""
GIVEN = (
    *EVALUATED,
    "routing",
    "renotify_seconds",
    "escalate_seconds",
    "escalation",
    "is_enabled",
)
"""What a person or program may set."""
SECONDS = (
    "for_seconds",
    "clear_seconds",
    "no_data_seconds",
    "renotify_seconds",
    "escalate_seconds",
)
CHOICES = {
    "severity": tuple(Severity),
    "no_data": tuple(NoData),
}
LONGEST_NAME = 200
MOST_RULES = 1_000


class RuleError(FaultsError):
    """the rule is wrong; `faults` says of each field why"""


def rules_of(project_id: int) -> list[RuleDefinition]:
    """Return the rules that watch a project."""
    rows = live_rules(project_id).filter(is_enabled=True).order_by("pk")
    return [make_rule(row) for row in rows.values(*COLUMNS)]


def live_rules(project_id: int) -> QuerySet[AlertRule]:
    """Return the rules of a project that are not deleted, by name."""
    rows = AlertRule.objects.filter(project_id=project_id, archived_at=None)
    return rows.order_by("name")


def ensure_standard_rules() -> None:
    """Create the built-in rules in projects that lack them."""
    for standard, given in STANDARD.items():
        lacking = Project.objects.exclude(alert_rules__standard=standard)
        AlertRule.objects.bulk_create(
            [AlertRule(project=project, standard=standard, **dict(given)) for project in lacking],
            ignore_conflicts=True,
        )


@transaction.atomic
def create_rule(
    project_id: int, given: Mapping[str, Any], by: Actor, owner: int | None = None
) -> AlertRule:
    """Make a rule; raises RuleError."""
    row = AlertRule(project_id=project_id, owner_id=owner, **check_rule(given))
    _refuse_taken(row)
    if live_rules(project_id).count() >= MOST_RULES:
        raise RuleError({"name": f"a project has at most {MOST_RULES} rules"})
    row.save(force_insert=True)
    note(project_id, by, "alert_rule.created", row.name, dict(_told(row)))
    return row


@transaction.atomic
def change_rule(row: AlertRule, given: Mapping[str, Any], by: Actor) -> AlertRule:
    """Change fields of a rule; its version grows when it judges otherwise. RuleError."""
    before = _told(row)
    judged = {name: given.get(name, before[name]) for name in ("signal", "detector")}
    if any(judged[name] != before[name] for name in judged):
        # Figures of another detector say nothing to this one.
        given = {"parameters": {}, **given}
    kept = check_rule({**before, **given})
    if any(kept[name] != before[name] for name in JUDGED):
        row.version = F("version") + 1
    for name, value in kept.items():
        setattr(row, name, value)
    _refuse_taken(row)
    row.updated_at = clock.now()
    row.save()
    row.refresh_from_db()
    changed = {name: kept[name] for name in kept if kept[name] != before[name]}
    note(row.project_id, by, "alert_rule.changed", row.name, changed)
    return row


def check_rule(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check and complete what a rule is told; raises RuleError with every fault."""
    faults = {str(name)[:40]: "unknown field" for name in given if name not in GIVEN}
    kept: dict[str, Any] = {**_defaults(), **given}
    kept["name"] = _name(kept["name"], faults)
    kept["group_by"] = _group_by(kept["group_by"], faults)
    faults |= {name: fault for name in kept if (fault := _fault(name, kept[name])) is not None}
    try:
        kept["filter"] = refuse_secret(check_filter(str(kept["filter"])))
    except (FilterError, SecretTypedError) as error:
        faults["filter"] = str(error)
    try:
        kept["parameters"] = check_parameters(kept["signal"], kept["detector"], kept["parameters"])
    except ParametersError as error:
        faults |= error.faults
    if faults:
        raise RuleError(faults)
    return kept


def _fault(name: str, value: object) -> str | None:
    if name in CHOICES and value not in CHOICES[name]:
        return f"one of {', '.join(CHOICES[name])}"
    if name in SECONDS and not _are_seconds(name, value):
        return f"whole seconds, at most {LONGEST_SECONDS}"
    if name in ("is_latching", "is_enabled") and not isinstance(value, bool):
        return "true or false"
    if name in ("routing", "escalation") and not _are_ids(value):
        return "a list of ids of channels"
    return None


def _defaults() -> dict[str, Any]:
    return {
        "name": "",
        "filter": "",
        "group_by": ["provider", "model"],
        "signal": "call_failure_ratio",
        "detector": "change",
        "parameters": {},
        "severity": "warning",
        "for_seconds": 0,
        "clear_seconds": 0,
        "no_data": "clear",
        "no_data_seconds": 6 * 3600,
        "is_latching": False,
        "routing": [],
        "renotify_seconds": None,
        "escalate_seconds": None,
        "escalation": [],
        "is_enabled": True,
    }


def _name(value: object, faults: dict[str, str]) -> str:
    text = redact(str(value), LONGEST_NAME).strip() if isinstance(value, str) else ""
    if not text:
        faults["name"] = "a name of at most 200 characters"
    return " ".join(text.split())[:LONGEST_NAME]


def _group_by(value: object, faults: dict[str, str]) -> list[str]:
    if not isinstance(value, list) or not all(name in SERIES_FIELDS for name in value):
        faults["group_by"] = f"a list of {', '.join(SERIES_FIELDS)}"
        return []
    return [name for name in SERIES_FIELDS if name in value]


def _are_seconds(name: str, value: object) -> bool:
    if value is None:
        return name in ("renotify_seconds", "escalate_seconds")
    return type(value) is int and 0 <= value <= LONGEST_SECONDS


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(type(one) is int for one in value)


def _refuse_taken(row: AlertRule) -> None:
    if live_rules(row.project_id).filter(name=row.name).exclude(pk=row.pk).exists():
        raise RuleError({"name": "another rule has this name"})


def _told(row: AlertRule) -> dict[str, Any]:
    return {name: getattr(row, name) for name in GIVEN}


LATEST = 60


@dataclass(frozen=True, slots=True)
class SliceTotals:
    """How many slices a rule watches, and how many of them fire."""

    watched: int = 0
    firing: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class RuleMinute:
    """What the looks at all slices of a rule found in one minute."""

    slot: datetime
    looks: int
    firing: int
    silent: int


def slices_by_rule(project_id: int) -> Mapping[int, SliceTotals]:
    """Count the slices of each rule of a project."""
    rows = AlertState.objects.filter(rule__project_id=project_id).values_list("rule_id")
    counted = rows.annotate(
        watched=Count("pk"),
        firing=Count("pk", filter=Q(state__in=ON)),
        pending=Count("pk", filter=Q(state="pending")),
    ).order_by()
    return {rule: SliceTotals(*counts) for rule, *counts in counted}


def minutes_by_rule(project_id: int) -> Mapping[int, Sequence[RuleMinute]]:
    """Return the last 60 minutes of each rule that was looked at, oldest first."""
    mine = Evaluation.objects.filter(state__rule__project_id=project_id)
    last = _last_look(project_id)
    if last is None:
        return {}
    recent = mine.filter(slot__gt=last - timedelta(minutes=LATEST))
    counted = (
        recent.values_list("state__rule_id", "slot")
        .annotate(
            looks=Count("pk"),
            firing=Count("pk", filter=Q(state_after__in=ON)),
            silent=Count("pk", filter=Q(verdict="no_data")),
        )
        .order_by("slot")
    )
    found: dict[int, list[RuleMinute]] = defaultdict(list)
    for rule, *minute in counted:
        found[rule].append(RuleMinute(*minute))
    return found


def _last_look(project_id: int) -> datetime | None:
    """Say when a slice was looked at last: one step into the index for each of them."""
    looks = Evaluation.objects.filter(state=OuterRef("pk")).order_by("-slot")
    states = AlertState.objects.filter(rule__project_id=project_id)
    told = states.annotate(last=Subquery(looks.values("slot")[:1]))
    found: datetime | None = told.aggregate(latest=Max("last"))["latest"]
    return found
