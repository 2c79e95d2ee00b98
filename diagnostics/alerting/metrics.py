"""Gauges of alerts on /metrics."""

from collections.abc import Iterator

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
    states = AlertState.objects.filter(rule__in=rules)
    yield _states(states)
    yield _slot_age(Project.objects.filter(**({} if project_id is None else {"pk": project_id})))
    yield _notifications(Notification.objects.filter(**mine))


def _incidents(rows: QuerySet[Incident]) -> Metric:
    family = GaugeMetricFamily(
        "failsoft_incidents_open",
        "Incidents that are open, by severity.",
        labels=("severity", "acknowledged"),
    )
    seen = Q(state=Incident.State.ACKNOWLEDGED)
    counted = {
        severity: (all_of, acknowledged)
        for severity, all_of, acknowledged in rows.values_list("severity")
        .annotate(all=Count("pk"), seen=Count("pk", filter=seen))
        .order_by()
    }
    for severity in Severity:
        total, acknowledged = counted.get(severity, (0, 0))
        family.add_metric((severity, "yes"), acknowledged)
        family.add_metric((severity, "no"), total - acknowledged)
    return family


def _states(rows: QuerySet[AlertState]) -> Metric:
    family = GaugeMetricFamily(
        "failsoft_alert_slices", "Slices of alert rules, by how they stand.", labels=("state",)
    )
    counted = dict(rows.values_list("state").annotate(Count("pk")).order_by())
    for state in AlertPhase:
        family.add_metric((state,), counted.get(state, 0))
    return family


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


def _notifications(rows: QuerySet[Notification]) -> Metric:
    family = GaugeMetricFamily(
        "failsoft_notifications",
        "Notifications that wait to be sent, and those given up that nobody has seen.",
        labels=("state",),
    )
    waiting = rows.filter(state=Notification.State.QUEUED)
    failed = rows.filter(state=Notification.State.FAILED, seen_at__isnull=True)
    family.add_metric(("waiting",), waiting.count())
    family.add_metric(("failed",), failed.count())
    return family
