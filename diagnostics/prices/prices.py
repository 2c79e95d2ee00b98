"""The cost of tokens and of runs: a custom price before a listed one, the latest that applies."""

import importlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import version
from itertools import islice, pairwise
from typing import NamedTuple

from django.db.models import Sum
from django.db.models.functions import TruncDate

from diagnostics.analysis.series import ModelKey
from diagnostics.prices.models import Price, Prices, TokenPrice, price_on, prices_of
from diagnostics.prices.retry_budgets import RetrySpend
from diagnostics.queries.sums import Question, Row, sum_rollups
from diagnostics.selection.query_language import Term
from diagnostics.store.models import Event, Series
from diagnostics.store.run_models import AgentRun
from diagnostics.store.windows import TimeWindow


@dataclass(frozen=True, slots=True)
class DaySpend:
    """The tokens of a day (UTC), or of days from it on that have the same price."""

    day: date
    input_tokens: int
    output_tokens: int


def cost_usd(prices: Sequence[TokenPrice], spends: Iterable[DaySpend]) -> Decimal | None:
    """Return the cost of tokens; None if a day with tokens has no price, since the sum would
    be incomplete."""
    total = Decimal(0)
    for spend in spends:
        if not spend.input_tokens and not spend.output_tokens:
            continue
        price = price_on(prices, spend.day)
        if price is None:
            return None
        total += price.of(spend.input_tokens, spend.output_tokens)
    return total if prices else None


RETRIES = ("retries", "retry_input_tokens", "retry_output_tokens", "retry_ms")


def retry_spend(
    project_id: int, prices: Prices, window: TimeWindow, terms: Sequence[Term] = ()
) -> dict[ModelKey, RetrySpend]:
    """Return the usage of retries, by model, in a query for each stretch of equal prices.

    Money is None if a day of the window has tokens and no price.
    """
    days = {price.valid_from for known in prices.values() for price in known}
    begins = sorted(datetime.combine(day, time.min, UTC) for day in days)
    inside = (at for at in begins if window.since < at < window.until)
    rows: dict[ModelKey, list[Row]] = defaultdict(list)
    for since, until in pairwise((window.since, *inside, window.until)):
        stretch = TimeWindow(since, until, window.finest)
        question = Question(stretch, ("provider", "model"), RETRIES, terms)
        for provider, model, *row in sum_rollups(project_id, question):
            rows[provider, model].append((since.astimezone(UTC).date(), *row))
    return {key: _spend(counts, prices.get(key, ())) for key, counts in rows.items()}


def total_spend(spends: Mapping[ModelKey, RetrySpend]) -> RetrySpend:
    """Return the sum of usage; money of models with a known price."""
    every = spends.values()
    priced = [spend.money_usd for spend in every if spend.money_usd is not None]
    return RetrySpend(
        calls=sum(spend.calls for spend in every),
        input_tokens=sum(spend.input_tokens for spend in every),
        output_tokens=sum(spend.output_tokens for spend in every),
        milliseconds=sum(spend.milliseconds for spend in every),
        money_usd=sum(priced, Decimal(0)) if priced else None,
    )


def _spend(rows: Sequence[Row], prices: Sequence[TokenPrice]) -> RetrySpend:
    """Return the sum of rows of (first day, calls, input tokens, output tokens, milliseconds)."""
    days = [DaySpend(row[0], row[2], row[3]) for row in rows]
    return RetrySpend(
        calls=sum(row[1] for row in rows),
        input_tokens=sum(day_spend.input_tokens for day_spend in days),
        output_tokens=sum(day_spend.output_tokens for day_spend in days),
        milliseconds=sum(row[4] for row in rows),
        money_usd=cost_usd(prices, days),
    )


TOKENS = ("input_tokens", "output_tokens")
CALLS = ("succeeded", "parse_invalid", "provider_error")


def costs_of(project_id: int, runs: Sequence[AgentRun]) -> Mapping[str, Decimal | None]:
    """Return the cost of each run in US dollars by its id, in two queries.

    None if one of its models has tokens and no price.
    """
    prices = prices_of(project_id)
    totals: dict[str, Decimal | None] = {}
    for reference, by_model in _spent(project_id, runs).items():
        costs = [cost_usd(prices.get(key, ()), spent) for key, spent in by_model.items()]
        known = [cost for cost in costs if cost is not None]
        totals[reference] = sum(known, Decimal(0)) if len(known) == len(costs) else None
    return totals


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


LIST = "genai_prices"
EDITION = f"genai-prices {version('genai-prices')}"
ALWAYS = date(2000, 1, 1)
ASKED_TOKENS = 1_000
"""Few, to get the price of short prompts where long ones cost more."""
MOST_AT_ONCE = 500
LONGEST_PROVIDER, LONGEST_MODEL = 100, 200


class ListPrice(NamedTuple):
    """US dollars per million tokens; None if the list lacks the model."""

    input_per_million: Decimal | None
    output_per_million: Decimal | None


def look_up_prices() -> int:
    """Look up the prices of new models in the list of genai-prices; return how many.

    The list costs a process 40 MB and 0.4 s. A worker loads it only for a model that was not
    looked up in this edition; a model that it lacks gets a row as well.
    """
    unknown = list(_unknown())
    if not unknown:
        return 0
    rows = [
        Price(
            project_id=project_id,
            provider=provider,
            model=model,
            origin=Price.Origin.LISTED,
            valid_from=ALWAYS,
            edition=EDITION,
            **listed_price(provider, model)._asdict(),
        )
        for project_id, provider, model in unknown
    ]
    Price.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["project", "provider", "model", "origin", "valid_from"],
        update_fields=["input_per_million", "output_per_million", "edition"],
    )
    return len(rows)


def listed_price(provider: str, model: str) -> ListPrice:
    """Return the listed price of a model; empty for a provider that the list lacks."""
    listed = importlib.import_module(LIST)
    usage = listed.Usage(input_tokens=ASKED_TOKENS, output_tokens=ASKED_TOKENS)
    try:
        price = listed.calc_price(usage, model_ref=model, provider_id=provider)
    except LookupError:
        return ListPrice(None, None)
    scale = Decimal(1_000_000) / ASKED_TOKENS
    return ListPrice(price.input_price * scale, price.output_price * scale)


def _unknown() -> Iterator[tuple[int, str, str]]:
    """Yield the counted models that were not looked up in this edition."""
    known = set(
        Price.objects.filter(origin=Price.Origin.LISTED, edition=EDITION).values_list(
            "project_id", "provider", "model"
        )
    )
    keys = Series.objects.values_list("project_id", "provider", "model").distinct()
    unlisted = (key for key in keys if key not in known)
    named_models = (
        (project_id, provider, model)
        for project_id, provider, model in unlisted
        if provider and model and len(provider) <= LONGEST_PROVIDER and len(model) <= LONGEST_MODEL
    )
    yield from islice(named_models, MOST_AT_ONCE)
