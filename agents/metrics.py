"""Gauges of this app on /metrics."""

from collections.abc import Iterator

from django.db.models import Count, Q
from prometheus_client.core import GaugeMetricFamily, Metric

from agents.breakers.models import Breaker


def gauge_breakers(project_id: int | None) -> Iterator[Metric]:
    """Yield the number of breakers that are not closed, by provider and model."""
    family = GaugeMetricFamily(
        "failsoft_breakers_open",
        "Circuit breakers that are not closed.",
        labels=("provider", "model", "kind"),
    )
    breakers = Breaker.objects.order_by("provider", "model", "kind")
    if project_id is not None:
        breakers = breakers.filter(project_id=project_id)
    not_closed = Count("pk", filter=~Q(state=Breaker.State.CLOSED))
    counted = breakers.values_list("provider", "model", "kind").annotate(not_closed=not_closed)
    for provider, model, kind, count in counted:
        labels = (provider or "unknown", model or "unknown", kind)
        family.add_metric(labels, count)
    yield family
