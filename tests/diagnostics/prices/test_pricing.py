"""What tokens cost: which price holds, sums, and how they are written."""

from datetime import date
from decimal import Decimal

import pytest

from diagnostics.figures import write_usd
from diagnostics.prices.models import TokenPrice, price_on
from diagnostics.prices.prices import DaySpend, cost_usd

MAY, JUNE, JULY = date(2026, 5, 1), date(2026, 6, 1), date(2026, 7, 1)
LISTED = TokenPrice(date(2000, 1, 1), Decimal(3), Decimal(15), is_own=False)
OWN = TokenPrice(JUNE, Decimal(1), Decimal(5))
DEARER = TokenPrice(JULY, Decimal(2), Decimal(10))


@pytest.mark.parametrize(
    ("prices", "day", "held"),
    [
        ([LISTED, OWN], MAY, LISTED),
        ([LISTED, OWN], JUNE, OWN),
        ([DEARER, OWN, LISTED], JULY, DEARER),
        ([OWN], MAY, None),
        ([], MAY, None),
    ],
)
def test_ones_own_price_beats_the_list_from_its_day_on(
    prices: list[TokenPrice], day: date, held: TokenPrice | None
) -> None:
    assert price_on(prices, day) is held


def test_each_day_is_paid_at_its_price() -> None:
    spent = [DaySpend(JUNE, 1_000_000, 200_000), DaySpend(JULY, 500_000, 0)]
    assert cost_usd([OWN, DEARER], spent) == Decimal(3)


def test_a_sum_with_a_day_without_a_price_is_unknown() -> None:
    assert cost_usd([OWN], [DaySpend(MAY, 1, 0), DaySpend(JUNE, 1, 0)]) is None
    assert cost_usd([OWN], [DaySpend(MAY, 0, 0), DaySpend(JUNE, 0, 1_000)]) is not None
    assert cost_usd([], []) is None


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        (None, "\N{EN DASH}"),
        (Decimal(0), "$0.00"),
        (Decimal("0.00001"), "< $0.0001"),
        (Decimal("0.4"), "$0.40"),
        (Decimal("0.12560"), "$0.1256"),
        (Decimal("1.005"), "$1.00"),
        (Decimal("12345.678"), "$12,345.68"),
    ],
)
def test_amounts_are_written_short(amount: Decimal | None, written: str) -> None:
    assert write_usd(amount) == written
