"""Gauges of alerts on /metrics."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from django.db.models import Count, Min, OuterRef, Q, QuerySet, Subquery
from prometheus_client.core import GaugeMetricFamily, Metric

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_records import judged_of
from diagnostics.alerting.notification_models import Notification
from diagnostics.alerting.rule_models import AlertRule, AlertSlot, AlertState
from diagnostics.alerting.states import AlertPhase, Severity
from diagnostics.verdict.ratings import JudgedShare


def gauge_alerts(project_id: int | None) -> Iterator[Metric]:
    """Incidents that are open, slices by state, rules; of all projects when None."""
    scope = {} if project_id is None else {"project_id": project_id}
    yield _incidents(Incident.objects.filter(cleared_at=None, **scope))
    rules = AlertRule.objects.filter(archived_at=None, is_enabled=True, **scope)
    yield GaugeMetricFamily("failsoft_alert_rules", "Alert rules that are on.", value=rules.count())
    states = AlertState.objects.filter(rule__in=rules).values_list("state")
    counted = dict(states.annotate(Count("pk")).order_by())
    yield _family(
        "failsoft_alert_slices",
        "Slices of alert rules, by state.",
        {(state,): counted.get(state, 0) for state in AlertPhase},
        "state",
    )
    yield _slot_age(Project.objects.filter(**({} if project_id is None else {"pk": project_id})))
    rows, states_of = Notification.objects.filter(**scope), Notification.State
    waiting, failed = rows.filter(state=states_of.QUEUED), rows.filter(state=states_of.FAILED)
    yield _family(
        "failsoft_notifications",
        "Notifications waiting to be sent, and those given up and not dismissed.",
        {("waiting",): waiting.count(), ("failed",): failed.filter(seen_at=None).count()},
        "state",
    )
    yield from _judged(judged_of(project_id, clock.now()))


def _judged(shares: Mapping[str, JudgedShare]) -> Iterator[Metric]:
    """What people said; there is no share while nothing was judged."""
    yield _family(
        "failsoft_judged",
        "Verdicts and alarms of the last 90 days that people judged: all, and those judged so.",
        {
            (what, counted): number
            for what, share in shares.items()
            for counted, number in (("all", share.total), ("so", share.count))
        },
        *("what", "counted"),
    )
    yield _family(
        "failsoft_judged_share",
        "Share of what was judged, with its 95 % interval.",
        {
            (what, bound): value
            for what, share in shares.items()
            if share.chance
            for bound, value in asdict(share.chance).items()
        },
        *("what", "bound"),
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
    judged = AlertSlot.objects.filter(project=OuterRef("pk")).order_by("-slot")
    last = rows.annotate(last=Subquery(judged.values("slot")[:1]))
    oldest = last.aggregate(oldest=Min("last"))["oldest"]
    age = (clock.now() - oldest).total_seconds() if oldest else 0.0
    return GaugeMetricFamily(
        "failsoft_alert_slot_age_seconds",
        "Time since alert rules were last evaluated; the oldest project's.",
        value=max(age, 0.0),
    )
