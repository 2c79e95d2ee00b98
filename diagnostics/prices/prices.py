"""The cost of tokens: a custom price before a listed one, the latest that applies."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from diagnostics.prices.models import Price
from diagnostics.prices.retry_budgets import RetrySpend
from diagnostics.queries.matrix import ModelKey
from diagnostics.queries.sums import Question, Row, Slots, sum_rollups
from diagnostics.selection.query_language import Term
from diagnostics.store.windows import WIDTHS, Grain, TimeWindow, floor

MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """US dollars per million tokens, from a day (UTC) on."""

    valid_from: date
    input_per_million_usd: Decimal
    output_per_million_usd: Decimal
    is_own: bool = True

    def of(self, input_tokens: int, output_tokens: int) -> Decimal:
        """Return the cost of tokens in US dollars."""
        return (
            self.input_per_million_usd * input_tokens + self.output_per_million_usd * output_tokens
        ) / MILLION


@dataclass(frozen=True, slots=True)
class DaySpend:
    """The tokens of one day (UTC)."""

    day: date
    input_tokens: int
    output_tokens: int


def price_on(prices: Iterable[TokenPrice], day: date) -> TokenPrice | None:
    """Return the price that applies on a day, None without one."""
    valid = [price for price in prices if price.valid_from <= day]
    return max(valid, key=lambda price: (price.is_own, price.valid_from), default=None)


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
DAY = WIDTHS[Grain.DAY]
Prices = Mapping[ModelKey, Sequence[TokenPrice]]


def prices_of(project_id: int) -> Prices:
    """Return every price of a project by model, in one query."""
    prices: dict[ModelKey, list[TokenPrice]] = defaultdict(list)
    for row in Price.objects.filter(project_id=project_id):
        if row.input_per_million is None or row.output_per_million is None:
            continue
        price = TokenPrice(
            row.valid_from,
            row.input_per_million,
            row.output_per_million,
            row.origin == Price.Origin.OWN,
        )
        prices[row.provider, row.model].append(price)
    return prices


def retry_spend(
    project_id: int, prices: Prices, window: TimeWindow, terms: Sequence[Term] = ()
) -> dict[ModelKey, RetrySpend]:
    """Return the usage of retries, by model, in one query.

    Money is None if a day of the window has tokens and no price.
    """
    first = floor(window.since, DAY)
    begins = {price.valid_from for known in prices.values() for price in known}
    # Without a price that begins in the window, its days need not be told apart.
    is_daily = any(first.date() < day <= window.until.date() for day in begins)
    days = max(-(-(window.until - first) // DAY), 1)
    slots = Slots(first, DAY, days) if is_daily else Slots(first, days * DAY, 1)
    question = Question(window, ("provider", "model"), RETRIES, terms, slots)
    rows: dict[ModelKey, list[Row]] = defaultdict(list)
    for provider, model, *row in sum_rollups(project_id, question):
        rows[provider, model].append(tuple(row))
    return {key: _spend(found, prices.get(key, ()), first) for key, found in rows.items()}


def total_spend(spends: Mapping[ModelKey, RetrySpend]) -> RetrySpend:
    """Return the sum of usage; money of models with a known price."""
    priced = [spend.money_usd for spend in spends.values() if spend.money_usd is not None]
    return RetrySpend(
        calls=sum(spend.calls for spend in spends.values()),
        input_tokens=sum(spend.input_tokens for spend in spends.values()),
        output_tokens=sum(spend.output_tokens for spend in spends.values()),
        milliseconds=sum(spend.milliseconds for spend in spends.values()),
        money_usd=sum(priced[1:], start=priced[0]) if priced else None,
    )


def _spend(rows: Sequence[Row], prices: Sequence[TokenPrice], first: datetime) -> RetrySpend:
    """Return the sum of rows of (day, calls, input tokens, output tokens, milliseconds)."""
    days = [
        DaySpend((first + day * DAY).date(), input_tokens, output_tokens)
        for day, _, input_tokens, output_tokens, _ in rows
    ]
    return RetrySpend(
        calls=sum(row[1] for row in rows),
        input_tokens=sum(day_spend.input_tokens for day_spend in days),
        output_tokens=sum(day_spend.output_tokens for day_spend in days),
        milliseconds=sum(row[4] for row in rows),
        money_usd=cost_usd(prices, days),
    )
