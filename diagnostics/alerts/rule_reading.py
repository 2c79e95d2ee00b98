"""Reads of the page of rules: how their slices stand, and the last looks of each."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, OuterRef, Q, Subquery

from diagnostics.models import AlertState, Evaluation

LATEST = 60
FIRING = ("firing", "acknowledged", "clearing")


@dataclass(frozen=True, slots=True)
class Slices:
    """How many slices a rule watches, and how many of them fire."""

    watched: int = 0
    firing: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Minute:
    """What the looks at all slices of a rule found in one minute."""

    slot: datetime
    looks: int
    firing: int
    silent: int


def slices_by_rule(project_id: int) -> Mapping[int, Slices]:
    """Count the slices of each rule of a project."""
    rows = AlertState.objects.filter(rule__project_id=project_id).values_list("rule_id")
    counted = rows.annotate(
        watched=Count("pk"),
        firing=Count("pk", filter=Q(state__in=FIRING)),
        pending=Count("pk", filter=Q(state="pending")),
    ).order_by()
    return {rule: Slices(*counts) for rule, *counts in counted}


def minutes_by_rule(project_id: int) -> Mapping[int, Sequence[Minute]]:
    """Give the last 60 minutes of each rule that was looked at, oldest first."""
    mine = Evaluation.objects.filter(state__rule__project_id=project_id)
    last = _last_look(project_id)
    if last is None:
        return {}
    recent = mine.filter(slot__gt=last - timedelta(minutes=LATEST))
    counted = (
        recent.values_list("state__rule_id", "slot")
        .annotate(
            looks=Count("pk"),
            firing=Count("pk", filter=Q(state_after__in=FIRING)),
            silent=Count("pk", filter=Q(verdict="no_data")),
        )
        .order_by("slot")
    )
    found: dict[int, list[Minute]] = defaultdict(list)
    for rule, *minute in counted:
        found[rule].append(Minute(*minute))
    return found


def _last_look(project_id: int) -> datetime | None:
    """Say when a slice was looked at last: one step into the index for each of them."""
    looks = Evaluation.objects.filter(state=OuterRef("pk")).order_by("-slot")
    states = AlertState.objects.filter(rule__project_id=project_id)
    told = states.annotate(last=Subquery(looks.values("slot")[:1]))
    found: datetime | None = told.aggregate(latest=Max("last"))["latest"]
    return found
