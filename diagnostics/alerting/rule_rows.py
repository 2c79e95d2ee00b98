"""Rules as rows: those out of the box, and what people make of their own."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Max, OuterRef, Q, Subquery
from pydantic import ValidationError

from diagnostics import clock
from diagnostics.accounts.audit_log import Actor, note
from diagnostics.alerting.counts import COUNTS_KEPT, lock_alerts
from diagnostics.alerting.notification_models import Channel
from diagnostics.alerting.rule_models import AlertRule, AlertState, Evaluation, live_rules
from diagnostics.alerting.rules import (
    USUAL,
    FilterError,
    ParametersError,
    RuleFields,
    check_parameters,
    check_scope,
)
from diagnostics.alerting.states import ON
from diagnostics.redaction.redactor import SecretTypedError, redact, refuse_secret
from diagnostics.selection.selection import FaultsError
from diagnostics.store.sql import delete_before
from diagnostics.verdict.ratings import JUDGED_SPAN

JUDGED = ("filter", "group_by", "signal", "detector", "parameters")
"""What changes the meaning of evaluations: the version grows with it."""
LONGEST_NAME = 200
MOST_RULES = 1_000
PURGE_BATCH = 20_000


class RuleError(FaultsError):
    """the rule is wrong; `faults` says of each field why"""


@transaction.atomic
def create_rule(
    project_id: int, fields: Mapping[str, Any], by: Actor, owner: int | None = None
) -> AlertRule:
    """Make a rule; raises RuleError."""
    lock_alerts(project_id)
    row = AlertRule(project_id=project_id, owner_id=owner, **check_rule(fields))
    _check_row(row, {})
    if live_rules(project_id).count() >= MOST_RULES:
        raise RuleError({"name": f"a project has at most {MOST_RULES} rules"})
    row.save(force_insert=True)
    note(project_id, by, "alert_rule.created", row.name, given_of(row))
    return row


@transaction.atomic
def change_rule(row: AlertRule, fields: Mapping[str, Any], by: Actor) -> AlertRule:
    """Change fields of a rule; its version grows when it judges otherwise. RuleError."""
    lock_alerts(row.project_id)
    # A back-test may have taken seconds since it was read.
    if not live_rules(row.project_id).filter(pk=row.pk).exists():
        raise RuleError({"name": "this rule was deleted"})
    row.refresh_from_db()
    before = given_of(row)
    judged = {name: fields.get(name, before[name]) for name in ("signal", "detector")}
    if any(judged[name] != before[name] for name in judged):
        # Figures of another detector say nothing to this one.
        fields = {"parameters": {}, **fields}
    kept = check_rule({**before, **fields})
    if any(kept[name] != before[name] for name in JUDGED):
        row.version = F("version") + 1
    for name, value in kept.items():
        setattr(row, name, value)
    _check_row(row, before)
    row.updated_at = clock.now()
    row.save()
    row.refresh_from_db()
    changed = {name: kept[name] for name in kept if kept[name] != before[name]}
    note(row.project_id, by, "alert_rule.changed", row.name, changed)
    return row


def check_rule(values: Mapping[str, Any], model: type[RuleFields] = RuleFields) -> dict[str, Any]:
    """Check and complete what a rule is told; raises RuleError with every fault."""
    fields: dict[str, Any] = {**USUAL, **values}
    faults = {name[:40]: "unknown field" for name in values if name not in model.model_fields}
    if isinstance(fields.get("name"), str):
        fields["name"] = " ".join(redact(fields["name"], LONGEST_NAME).split())
    try:
        text = str(fields.get("filter", ""))
        kept_filter = check_scope(text, fields.get("signal"), fields.get("detector"))
        fields["filter"] = refuse_secret(kept_filter)
    except (FilterError, SecretTypedError) as error:
        faults["filter"] = str(error)
    try:
        parameters = fields.get("parameters", {})
        fields["parameters"] = check_parameters(fields["signal"], fields["detector"], parameters)
    except ParametersError as error:
        faults |= error.faults
    try:
        kept = model.model_validate(fields).model_dump()
    except ValidationError as error:
        faults = {str(item["loc"][0])[:40]: item["msg"] for item in error.errors()} | faults
    if faults:
        raise RuleError(faults)
    return kept


def _check_row(row: AlertRule, before: Mapping[str, Any]) -> None:
    """Refuse a name that is taken and channels of others; those named before may be deleted."""
    faults = {}
    if live_rules(row.project_id).filter(name=row.name).exclude(pk=row.pk).exists():
        faults["name"] = "another rule has this name"
    own = set(Channel.objects.filter(project_id=row.project_id).values_list("pk", flat=True))
    for field in ("routing", "escalation"):
        if unknown := set(getattr(row, field)) - own - set(before.get(field, ())):
            faults[field] = f"no channel of this project: {min(unknown)}"
    if faults:
        raise RuleError(faults)


def given_of(row: AlertRule) -> dict[str, Any]:
    return {name: getattr(row, name) for name in RuleFields.model_fields}


LATEST = 60


@dataclass(frozen=True, slots=True)
class SliceTotals:
    watched: int = 0
    firing: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class RuleMinute:
    slot: datetime
    looks: int
    firing: int
    silent: int


def slices_by_rule(project_id: int) -> Mapping[int, SliceTotals]:
    """Count the slices of each rule; of one without any there are none."""
    rows = AlertState.objects.filter(rule__project_id=project_id).values_list("rule_id")
    counted = rows.annotate(
        watched=Count("pk"),
        firing=Count("pk", filter=Q(state__in=ON)),
        pending=Count("pk", filter=Q(state="pending")),
    ).order_by()
    return defaultdict(SliceTotals, {rule: SliceTotals(*counts) for rule, *counts in counted})


def minutes_by_rule(project_id: int) -> Mapping[int, Sequence[RuleMinute]]:
    """Return the last 60 minutes of each rule that was looked at, oldest first."""
    evaluations = Evaluation.objects.filter(state__rule__project_id=project_id)
    # One step into the index for each slice.
    looks = Evaluation.objects.filter(state=OuterRef("pk")).order_by("-slot")
    states = AlertState.objects.filter(rule__project_id=project_id)
    with_last = states.annotate(last=Subquery(looks.values("slot")[:1]))
    minutes: dict[int, list[RuleMinute]] = defaultdict(list)
    last: datetime | None = with_last.aggregate(latest=Max("last"))["latest"]
    if last is None:
        return minutes
    recent = evaluations.filter(slot__gt=last - timedelta(minutes=LATEST))
    counted = (
        recent.values_list("state__rule_id", "slot")
        .annotate(
            looks=Count("pk"),
            firing=Count("pk", filter=Q(state_after__in=ON)),
            silent=Count("pk", filter=Q(verdict="no_data")),
        )
        .order_by("slot")
    )
    for rule, *minute in counted:
        minutes[rule].append(RuleMinute(*minute))
    return minutes


def purge_evaluations() -> int:
    """Forget evaluations, their days, slots and frozen minutes that are older than is kept.

    Gives how many.
    """
    now = clock.now()
    kept = now - timedelta(days=settings.FAILSOFT_KEEP_EVALUATION_DAYS)
    old = (
        ("diagnostics_evaluation", "slot", kept),
        ("diagnostics_alertslot", "slot", kept),
        ("diagnostics_alert_minute", "bucket", now - COUNTS_KEPT),
        ("diagnostics_ruleday", "day", now - JUDGED_SPAN),
    )
    return sum(delete_before(*row, PURGE_BATCH) for row in old)
