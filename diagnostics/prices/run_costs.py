"""The cost of runs: the tokens of each called model, at the prices of the day."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC
from decimal import Decimal

from django.db.models import Sum
from django.db.models.functions import TruncDate

from diagnostics.prices.prices import DaySpend, cost_usd, prices_of
from diagnostics.queries.matrix import ModelKey
from diagnostics.store.models import Event
from diagnostics.store.run_models import AgentRun

TOKENS = ("input_tokens", "output_tokens")
CALLS = ("succeeded", "parse_invalid", "provider_error")


def costs_of(project_id: int, runs: Sequence[AgentRun]) -> Mapping[str, Decimal | None]:
    """Return the cost of each run in US dollars by its id, in two queries.

    None if one of its models has tokens and no price.
    """
    prices = prices_of(project_id)
    return {
        reference: _total([cost_usd(prices.get(key, ()), spent) for key, spent in by_model.items()])
        for reference, by_model in _spent(project_id, runs).items()
    }


def _total(costs: Sequence[Decimal | None]) -> Decimal | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None


def _spent(
    project_id: int, runs: Sequence[AgentRun]
) -> Mapping[str, Mapping[ModelKey, list[DaySpend]]]:
    spend_by_run: dict[str, dict[ModelKey, list[DaySpend]]] = defaultdict(dict)
    if not runs:
        return spend_by_run
    calls = Event.objects.filter(
        project_id=project_id,
        correlation_id__in=[run.correlation_id for run in runs],
        kind__in=CALLS,
        # The times limit PostgreSQL to the right partitions.
        occurred_at__range=(min(run.began_at for run in runs), max(run.ended_at for run in runs)),
    )
    rows = calls.values_list(
        "correlation_id", "provider", "model", TruncDate("occurred_at", tzinfo=UTC)
    )
    for reference, provider, model, day, *tokens in rows.annotate(*map(Sum, TOKENS)):
        input_tokens, output_tokens = (count or 0 for count in tokens)
        if input_tokens or output_tokens:
            spent = spend_by_run[reference].setdefault((provider, model), [])
            spent.append(DaySpend(day, input_tokens, output_tokens))
    return spend_by_run
