"""What tokens cost: a price of one's own before a listed one, the latest that held."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

MILLION = Decimal(1_000_000)
CENT = Decimal("0.01")
SMALLEST = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """US dollars for a million tokens, from a day (UTC) on."""

    valid_from: date
    input_per_million_usd: Decimal
    output_per_million_usd: Decimal
    is_own: bool = True

    def of(self, input_tokens: int, output_tokens: int) -> Decimal:
        """Give the cost of tokens in US dollars."""
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
    """Give the price that holds on a day, None without one."""
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


def write_usd(amount: Decimal | None) -> str:
    """Write an amount of US dollars: cents from a dollar on, finer below."""
    if amount is None:
        return "\N{EN DASH}"
    if amount >= 1 or not amount:
        return f"${amount.quantize(CENT):,}"
    if amount < SMALLEST:
        return f"< ${SMALLEST}"
    fine = amount.quantize(SMALLEST).normalize()
    return f"${max(fine, amount.quantize(CENT), key=_decimals):f}"


def _decimals(amount: Decimal) -> int:
    return -int(amount.as_tuple().exponent)
