"""What a retry budget would have recovered, and its cost.

Based on counts by attempt number only: the chance of each attempt is that of the answers that
needed it. A budget of b retries allows b + 1 attempts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from diagnostics.analysis.statistics import (
    LEAST_TRIALS,
    AttemptTally,
    Chance,
    chance_of,
    chance_within,
)

BUDGETS = (1, 2, 3)
MOST_TOLD = 5
"""The attempts that counts distinguish."""


@dataclass(frozen=True, slots=True)
class RetrySpend:
    """The usage of all retries; money is None without a price."""

    calls: int
    input_tokens: int = 0
    output_tokens: int = 0
    milliseconds: int = 0
    money_usd: Decimal | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A retry budget, and how many answers it recovers after a failed first attempt.

    `share` and the costs are None if no answer had that many attempts. `is_thin` means fewer than
    20 had. Tokens, seconds and money are based on the mean retry.
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
        return None if self.share is None else self.share.share * self.failed_first

    @property
    def tokens_each(self) -> float | None:
        return self.tokens / self.rescued if self.tokens and self.rescued else None

    @property
    def money_each_usd(self) -> Decimal | None:
        if self.money_usd is None or not self.rescued:
            return None
        return self.money_usd / Decimal(str(self.rescued))


@dataclass(frozen=True, slots=True)
class Rescue:
    """How often one further attempt succeeded, of those made."""

    number: int
    chance: Chance
    made: int


def next_attempt(tallies: Sequence[AttemptTally], spent: int) -> Rescue | None:
    """Return the success of one attempt after `spent` ones; None with fewer than 20.

    Attempts from the fifth on are counted together.
    """
    index = min(spent, MOST_TOLD - 1)
    if not spent or index >= len(tallies) or tallies[index].made < LEAST_TRIALS:
        return None
    tally = tallies[index]
    return Rescue(spent + 1, chance_of(tally.good, tally.made), tally.made)


def what_if(tallies: Sequence[AttemptTally], spend: RetrySpend) -> list[WhatIf]:
    return [_estimate(tallies, spend, budget) for budget in BUDGETS]


def _estimate(tallies: Sequence[AttemptTally], spend: RetrySpend, budget: int) -> WhatIf:
    failed_first = tallies[0].made - tallies[0].good if tallies else 0
    retries = tallies[1 : budget + 1]
    is_seen = len(retries) == budget and all(tally.made for tally in retries)
    share = chance_within(retries) if is_seen else None
    calls = None
    if is_seen:
        # Each is made for the answers not yet recovered.
        calls, unrescued = 0.0, float(failed_first)
        for tally in retries:
            calls += unrescued
            unrescued *= 1 - tally.good / tally.made
    mean = None if calls is None or not spend.calls else calls / spend.calls
    money = spend.money_usd
    if money is not None:
        money = None if mean is None else money * Decimal(str(mean))
    return WhatIf(
        budget=budget,
        failed_first=failed_first,
        share=share,
        calls=calls,
        tokens=None if mean is None else spend.tokens * mean,
        seconds=None if mean is None else spend.milliseconds * mean / 1000,
        money_usd=money,
        is_thin=is_seen and retries[-1].made < LEAST_TRIALS,
    )
