"""Prices of models as rows, and what retries cost at them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from diagnostics.core.matrix import ModelKey
from diagnostics.core.pricing import DaySpend, TokenPrice, cost_usd
from diagnostics.core.query_language import Term
from diagnostics.core.retry_budgets import RetrySpend
from diagnostics.core.windows import WIDTHS, Grain, Window, floor
from diagnostics.models import Price
from diagnostics.queries.summing import Question, Row, Slots, sum_rollups

RETRIES = ("retries", "retry_input_tokens", "retry_output_tokens", "retry_ms")
DAY = WIDTHS[Grain.DAY]
Prices = Mapping[ModelKey, Sequence[TokenPrice]]


def prices_of(project_id: int) -> Prices:
    """Give every price of a project by model, in one query."""
    found: dict[ModelKey, list[TokenPrice]] = defaultdict(list)
    for row in Price.objects.filter(project_id=project_id):
        if row.input_per_million is None or row.output_per_million is None:
            continue
        price = TokenPrice(
            row.valid_from,
            row.input_per_million,
            row.output_per_million,
            row.origin == Price.Origin.OWN,
        )
        found[row.provider, row.model].append(price)
    return found


def retry_spend(
    project_id: int, window: Window, terms: Sequence[Term] = ()
) -> dict[ModelKey, RetrySpend]:
    """Give what calls beyond the first of a ladder used, by model; in two queries.

    Money is None where a day of the window has tokens and no price.
    """
    prices = prices_of(project_id)
    return {
        key: _spend(rows, prices.get(key, ()), floor(window.since, DAY))
        for key, rows in _by_day(project_id, window, terms).items()
    }


def total_spend(spent: Mapping[ModelKey, RetrySpend]) -> RetrySpend:
    """Add up what models used; money of those whose price is known."""
    priced = [one.money_usd for one in spent.values() if one.money_usd is not None]
    return RetrySpend(
        calls=sum(one.calls for one in spent.values()),
        input_tokens=sum(one.input_tokens for one in spent.values()),
        output_tokens=sum(one.output_tokens for one in spent.values()),
        milliseconds=sum(one.milliseconds for one in spent.values()),
        money_usd=sum(priced[1:], start=priced[0]) if priced else None,
    )


def _by_day(project_id: int, window: Window, terms: Sequence[Term]) -> dict[ModelKey, list[Row]]:
    first = floor(window.since, DAY)
    count = max(-(-(window.until - first) // DAY), 1)
    asked = Question(window, ("provider", "model"), RETRIES, terms, Slots(first, DAY, count))
    found: dict[ModelKey, list[Row]] = defaultdict(list)
    for provider, model, *row in sum_rollups(project_id, asked):
        found[provider, model].append(tuple(row))
    return found


def _spend(rows: Sequence[Row], prices: Sequence[TokenPrice], first: datetime) -> RetrySpend:
    """Add up rows of (day, calls, tokens sent, tokens answered, milliseconds)."""
    days = [
        DaySpend((first + day * DAY).date(), sent, answered) for day, _, sent, answered, _ in rows
    ]
    return RetrySpend(
        calls=sum(row[1] for row in rows),
        input_tokens=sum(one.input_tokens for one in days),
        output_tokens=sum(one.output_tokens for one in days),
        milliseconds=sum(row[4] for row in rows),
        money_usd=cost_usd(prices, days),
    )
