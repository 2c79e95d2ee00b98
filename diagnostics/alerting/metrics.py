"""Gauges of alerts on /metrics."""

from collections.abc import Iterator, Mapping

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from prometheus_client.core import GaugeMetricFamily, Metric

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.rule_models import AlertRule, AlertSlot, AlertState
from diagnostics.alerting.severity import Severity
from diagnostics.alerting.states import AlertPhase


def gauge_alerts(project_id: int | None) -> Iterator[Metric]:
    """Incidents that are open, slices by state, rules; of all projects when None."""
    mine = {} if project_id is None else {"project_id": project_id}
    yield _incidents(Incident.objects.filter(cleared_at=None, **mine))
    rules = AlertRule.objects.filter(archived_at=None, is_enabled=True, **mine)
    yield GaugeMetricFamily("failsoft_alert_rules", "Alert rules that are on.", value=rules.count())
    states = AlertState.objects.filter(rule__in=rules).values_list("state")
    counted = dict(states.annotate(Count("pk")).order_by())
    yield _family(
        "failsoft_alert_slices",
        "Slices of alert rules, by how they stand.",
        {(state,): counted.get(state, 0) for state in AlertPhase},
        "state",
    )
    yield _slot_age(Project.objects.filter(**({} if project_id is None else {"pk": project_id})))
    rows, states_of = Notification.objects.filter(**mine), Notification.State
    waiting, failed = rows.filter(state=states_of.QUEUED), rows.filter(state=states_of.FAILED)
    yield _family(
        "failsoft_notifications",
        "Notifications that wait to be sent, and those given up that nobody has seen.",
        {("waiting",): waiting.count(), ("failed",): failed.filter(seen_at=None).count()},
        "state",
    )


def _family(
    name: str, words: str, samples: Mapping[tuple[str, ...], float], *labels: str
) -> Metric:
    family = GaugeMetricFamily(name, words, labels=labels)
    for values, number in samples.items():
        family.add_metric(values, number)
    return family


def _incidents(rows: QuerySet[Incident]) -> Metric:
    seen = Q(state=Incident.State.ACKNOWLEDGED)
    counted = rows.values_list("severity").annotate(all=Count("pk"), seen=Count("pk", filter=seen))
    samples: dict[tuple[str, ...], float] = {
        (severity, word): 0 for severity in Severity for word in ("yes", "no")
    }
    for severity, all_of, acknowledged in counted.order_by():
        samples[severity, "yes"] = acknowledged
        samples[severity, "no"] = all_of - acknowledged
    return _family(
        "failsoft_incidents_open",
        "Incidents that are open, by severity.",
        samples,
        *("severity", "acknowledged"),
    )


def _slot_age(rows: QuerySet[Project]) -> Metric:
    """Return how long ago the minute was that a project was looked at last, the oldest one."""
    mine = AlertSlot.objects.filter(project=OuterRef("pk")).order_by("-slot")
    last = rows.annotate(last=Subquery(mine.values("slot")[:1])).filter(last__isnull=False)
    slots = [row.last for row in last]
    age = (clock.now() - min(slots)).total_seconds() if slots else 0.0
    return GaugeMetricFamily(
        "failsoft_alert_slot_age_seconds",
        "Time since the last minute that alert rules were looked at; the oldest project's.",
        value=max(age, 0.0),
    )
