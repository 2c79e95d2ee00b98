"""What tokens cost: a price of one's own before a listed one, the latest that held."""

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
    """US dollars for a million tokens, from a day (UTC) on."""

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
    """Return the price that holds on a day, None without one."""
    held = [price for price in prices if price.valid_from <= day]
    return max(held, key=lambda price: (price.is_own, price.valid_from), default=None)


def cost_usd(prices: Sequence[TokenPrice], spent: Iterable[DaySpend]) -> Decimal | None:
    """Add up what tokens cost; None when a day with tokens has no price: a part of a sum
    would pass for the whole."""
    total = Decimal(0)
    for one in spent:
        if not one.input_tokens and not one.output_tokens:
            continue
        price = price_on(prices, one.day)
        if price is None:
            return None
        total += price.of(one.input_tokens, one.output_tokens)
    return total if prices else None


RETRIES = ("retries", "retry_input_tokens", "retry_output_tokens", "retry_ms")
DAY = WIDTHS[Grain.DAY]
Prices = Mapping[ModelKey, Sequence[TokenPrice]]


def prices_of(project_id: int) -> Prices:
    """Return every price of a project by model, in one query."""
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
    project_id: int, prices: Prices, window: TimeWindow, terms: Sequence[Term] = ()
) -> dict[ModelKey, RetrySpend]:
    """Return what calls beyond the first of a ladder used, by model; in one query.

    Money is None where a day of the window has tokens and no price.
    """
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


def _by_day(
    project_id: int, window: TimeWindow, terms: Sequence[Term]
) -> dict[ModelKey, list[Row]]:
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
