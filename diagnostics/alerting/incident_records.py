"""Reads of the incident pages: the list with its noise, one incident with what became of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Max, Prefetch, Q, Sum, Window
from django.db.models.functions import RowNumber

from diagnostics.alerting.incident_models import Incident, IncidentSlice
from diagnostics.alerting.rule_models import Evaluation, RuleDay
from diagnostics.selection.selection import Selection
from diagnostics.verdict.ratings import JUDGED_SPAN, JudgedShare, right_share

MOST_READ = 500
MOST_SHOWN = 40
LATEST = 60
MOST_STRIPS = 8


def incidents_in(
    project_id: int, selection: Selection, since: datetime, until: datetime
) -> list[Incident]:
    """Return the incidents that are open or fired in a window, open ones first, then latest.

    At most one more than are shown: whether there are others.
    """
    rows = Incident.objects.filter(project_id=project_id, fired_at__lt=until).filter(
        Q(cleared_at__isnull=True) | Q(fired_at__gte=since)
    )
    slices = IncidentSlice.objects.select_related("rule").order_by("pk")
    with_slices = rows.select_related("assignee", "acknowledged_by").prefetch_related(
        Prefetch("slices", slices)
    )
    latest = with_slices.order_by(F("cleared_at").desc(nulls_first=True), "-fired_at", "-pk")
    kept = [incident for incident in latest[:MOST_READ] if incident.is_kept_by(selection.terms)]
    kept.sort(
        key=lambda incident: (incident.cleared_at is not None, -incident.fired_at.timestamp())
    )
    return kept[: MOST_SHOWN + 1]


def noise_of(project_id: int | None, since: datetime, until: datetime) -> JudgedShare:
    """Count how many incidents of a window were judged to be false alarms; None: all projects."""
    rows = Incident.objects.filter(fired_at__gte=since, fired_at__lt=until)
    if project_id is not None:
        rows = rows.filter(project_id=project_id)
    counts = rows.aggregate(
        total=Count("pk", filter=Q(resolution_cause__isnull=False)),
        count=Count("pk", filter=Q(resolution_cause=Incident.Cause.FALSE_ALARM)),
    )
    return JudgedShare(**counts)


def judged_of(project_id: int | None, now: datetime) -> Mapping[str, JudgedShare]:
    """Return the shares of right verdicts and of false alarms in the last 90 days."""
    return {
        "verdicts_right": right_share(project_id, now),
        "alarms_false": noise_of(project_id, now - JUDGED_SPAN, now),
    }


@dataclass(frozen=True, slots=True)
class RuleTotals:
    """What became of the evaluations of a rule: a slice that fires is one fire.

    `judged_fires` are those whose incident ended with a cause, `false_fires` those whose
    cause is a false alarm.
    """

    evaluations: int = 0
    fires: int = 0
    judged_fires: int = 0
    false_fires: int = 0
    last_fired: datetime | None = None

    @property
    def noise(self) -> JudgedShare:
        return JudgedShare(self.judged_fires, self.false_fires)


def totals_by_rule(project_id: int, now: datetime) -> Mapping[int, RuleTotals]:
    """Count the evaluations and fires of each rule of a project in the last 90 days.

    What was found in stored data fired as well; no rating judges the rule by it. Of a rule
    without any there are none.
    """
    since = now - JUDGED_SPAN
    false = Q(incident__resolution_cause=Incident.Cause.FALSE_ALARM)
    days = RuleDay.objects.filter(rule__project_id=project_id, day__gt=since.date())
    evaluated = dict(days.values_list("rule_id").annotate(Sum("evaluations")).order_by())
    slices = IncidentSlice.objects.filter(
        incident__project_id=project_id, fired_at__gte=since
    ).values_list("rule_id")
    notified = Q(incident__is_backfilled=False)
    counted = slices.annotate(
        fires=Count("pk"),
        judged=Count("pk", filter=notified & Q(incident__resolution_cause__isnull=False)),
        false=Count("pk", filter=notified & false),
        last=Max("fired_at"),
    ).order_by()
    fired = {rule: counts for rule, *counts in counted}
    totals = {
        rule: RuleTotals(evaluated.get(rule, 0), *fired.get(rule, ()))
        for rule in {*evaluated, *fired}
    }
    return defaultdict(RuleTotals, totals)


def evaluations_of(
    slices: Iterable[IncidentSlice], until: datetime
) -> Mapping[int, Sequence[Evaluation]]:
    """Return the last evaluations of each of these slices up to a time, oldest first."""
    states = list(dict.fromkeys(row.state_id for row in slices))[:MOST_STRIPS]
    rows = (
        Evaluation.objects.filter(
            state__in=states, slot__lte=until, slot__gt=until - timedelta(days=1)
        )
        .annotate(place=Window(RowNumber(), partition_by="state", order_by=F("slot").desc()))
        .filter(place__lte=LATEST)
        .order_by("state", "slot")
    )
    by_state: dict[int, list[Evaluation]] = defaultdict(list)
    for row in rows:
        by_state[row.state_id].append(row)
    return by_state
