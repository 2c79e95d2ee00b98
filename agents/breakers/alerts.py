"""Open breakers as a signal that alert rules can watch, and as a gauge on /metrics."""

from collections import Counter
from collections.abc import Iterator

from django.db.models import Count, Q
from prometheus_client.core import GaugeMetricFamily, Metric

from agents.breakers.models import Breaker
from diagnostics.alerting.signals import Signal
from diagnostics.alerting.sources import Found, SourceQuestion, add_source
from diagnostics.selection.selection import keeps_all

FIELDS = ("provider", "model")


def register() -> None:
    add_source(Signal.BREAKER_OPEN, count_open)


def count_open(asked: SourceQuestion) -> list[Found]:
    """Count the breakers that are not closed now, of each provider and model."""
    counts: Counter[tuple[str, str]] = Counter()
    rows = Breaker.objects.filter(project_id=asked.project_id)
    for provider, model, state in rows.values_list(*FIELDS, "state"):
        if keeps_all(asked.terms, {"provider": provider, "model": model}):
            counts[provider, model] += state != Breaker.State.CLOSED
    return [
        ({"provider": provider, "model": model}, count)
        for (provider, model), count in counts.items()
    ]


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
