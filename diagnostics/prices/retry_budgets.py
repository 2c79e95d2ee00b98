"""What a budget of retries would have rescued, and what it would have cost.

From counts by attempt number alone: the chance of each attempt is that of the ladders that
made it. A budget of b retries allows b + 1 calls of a ladder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from diagnostics.analysis.statistics import (
    LEAST_TRIALS,
    AttemptTally,
    Chance,
    chance_within,
    wilson_interval,
)

BUDGETS = (1, 2, 3)
MOST_TOLD = 5
"""Attempts that counts tell apart."""


@dataclass(frozen=True, slots=True)
class RetrySpend:
    """What all calls beyond the first of a ladder used; money is None without a price."""

    calls: int
    input_tokens: int = 0
    output_tokens: int = 0
    milliseconds: int = 0
    money_usd: Decimal | None = None

    @property
    def tokens(self) -> int:
        """Tokens in both directions."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A budget of retries: how many of the ladders whose first attempt failed it rescues.

    `share` and the costs are None where no ladder ever went that far. `is_thin` says that
    fewer than 20 did. Tokens, seconds and money follow the mean retry that was seen.
    """

    budget: int
    failed_first: int
    share: Chance | None
    calls: float | None
    tokens: float | None
    seconds: float | None
    money_usd: Decimal | None
    is_thin: bool

    @property
    def rescued(self) -> float | None:
        """Ladders that end well because of the retries."""
        return None if self.share is None else self.share.share * self.failed_first

    @property
    def tokens_each(self) -> float | None:
        """Tokens spent for each rescued ladder."""
        return self.tokens / self.rescued if self.tokens and self.rescued else None

    @property
    def money_each_usd(self) -> Decimal | None:
        """Money spent for each rescued ladder."""
        if self.money_usd is None or not self.rescued:
            return None
        return self.money_usd / Decimal(str(self.rescued))


@dataclass(frozen=True, slots=True)
class Rescue:
    """How often one attempt more than so many succeeded, of those that were made."""

    number: int
    chance: Chance
    made: int


def one_more(tallies: Sequence[AttemptTally], spent: int) -> Rescue | None:
    """Say what one attempt after `spent` ones brought; None below 20 that were made.

    Attempts from the fifth on are counted together.
    """
    place = min(spent, MOST_TOLD - 1)
    if not spent or place >= len(tallies) or tallies[place].made < LEAST_TRIALS:
        return None
    tally = tallies[place]
    low, high = wilson_interval(tally.good, tally.made)
    chance = Chance(tally.good / tally.made, low, high)
    return Rescue(spent + 1, chance, tally.made)


def what_if(
    tallies: Sequence[AttemptTally], spend: RetrySpend, budgets: Sequence[int] = BUDGETS
) -> list[WhatIf]:
    """Estimate budgets of retries from the counts of attempts 1, 2, ..."""
    return [_estimate(tallies, spend, budget) for budget in budgets]


def _estimate(tallies: Sequence[AttemptTally], spend: RetrySpend, budget: int) -> WhatIf:
    failed_first = tallies[0].made - tallies[0].good if tallies else 0
    retries = tallies[1 : budget + 1]
    is_seen = len(retries) == budget and all(tally.made for tally in retries)
    share = chance_within(retries) if is_seen else None
    calls = _calls(failed_first, retries) if is_seen else None
    mean = None if calls is None or not spend.calls else calls / spend.calls
    return WhatIf(
        budget=budget,
        failed_first=failed_first,
        share=share,
        calls=calls,
        tokens=None if mean is None else spend.tokens * mean,
        seconds=None if mean is None else spend.milliseconds * mean / 1000,
        money_usd=_money(spend, mean),
        is_thin=is_seen and retries[-1].made < LEAST_TRIALS,
    )


def _calls(failed_first: int, retries: Sequence[AttemptTally]) -> float:
    """Each retry is made by those whom none before it rescued."""
    calls, left = 0.0, float(failed_first)
    for tally in retries:
        calls += left
        left *= 1 - tally.good / tally.made
    return calls


def _money(spend: RetrySpend, mean: float | None) -> Decimal | None:
    if spend.money_usd is None or mean is None:
        return None
    return spend.money_usd * Decimal(str(mean))
