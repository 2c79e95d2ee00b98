"""Gauges of alerts on /metrics."""

from collections.abc import Iterator

from django.db.models import Count, Q, QuerySet
from prometheus_client.core import GaugeMetricFamily, Metric

from diagnostics.models import AlertRule, AlertState, Incident

SEVERITIES = ("info", "warning", "critical")


def gauge_alerts(project_id: int | None) -> Iterator[Metric]:
    """Incidents that are open, slices by state, rules; of all projects when None."""
    mine = {} if project_id is None else {"project_id": project_id}
    yield _incidents(Incident.objects.filter(cleared_at=None, **mine))
    rules = AlertRule.objects.filter(archived_at=None, is_enabled=True, **mine)
    yield GaugeMetricFamily(
        "failsoft_alert_rules", "Alert rules that are on.", value=rules.count()
    )
    states = AlertState.objects.filter(rule__in=rules)
    yield _states(states)


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
    for severity in SEVERITIES:
        total, acknowledged = counted.get(severity, (0, 0))
        family.add_metric((severity, "yes"), acknowledged)
        family.add_metric((severity, "no"), total - acknowledged)
    return family


def _states(rows: QuerySet[AlertState]) -> Metric:
    family = GaugeMetricFamily(
        "failsoft_alert_slices",
        "Slices of alert rules, by how they stand.",
        labels=("state",),
    )
    counted = dict(rows.values_list("state").annotate(Count("pk")).order_by())
    for state in AlertState.State.values:
        family.add_metric((state,), counted.get(state, 0))
    return family
