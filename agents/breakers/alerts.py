"""Open breakers as a signal that alert rules can watch."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from agents.breakers.models import Breaker
from diagnostics.alerting.signals import Signal
from diagnostics.alerting.sources import Found, add_source
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import keeps_all

FIELDS = ("provider", "model")


def register() -> None:
    add_source(Signal.BREAKER_OPEN, count_open)


def count_open(
    project_id: int, _since: datetime, _until: datetime, terms: Sequence[Term]
) -> list[Found]:
    """Count the breakers that are not closed now, of each provider and model."""
    counts: Counter[tuple[str, str]] = Counter()
    rows = Breaker.objects.filter(project_id=project_id)
    for provider, model, state in rows.values_list(*FIELDS, "state"):
        if keeps_all(terms, {"provider": provider, "model": model}):
            counts[provider, model] += state != Breaker.State.CLOSED
    return [
        ({"provider": provider, "model": model}, count)
        for (provider, model), count in counts.items()
    ]
