"""Failures that keep company: how many come together, so that so many calls count as one.

Retries that are not told as such, or agents that share a broken input.
"""

from collections.abc import Sequence
from typing import NamedTuple

from diagnostics.analysis.detectors.rhythm import HOUR

QUARTER, QUARTERS = 900.0, 4
LENT_FAILURES = 10.0
"""Failures that were alone, lent to a project, and those of the project to a series."""
LEAST_COMPANY, MOST_COMPANY = 1.15, 10.0
"""How many failures come together, for that to be believed, and at most."""

Quarters = Sequence[tuple[int, int]]
"""Calls and failures of each quarter of an hour."""
NO_QUARTERS: Quarters = ((0, 0),) * QUARTERS


def add_to_quarter(quarters: Quarters, at: float, calls: int, failed: int) -> Quarters:
    """Return quarters with more calls in one of them."""
    place = int(at % HOUR // QUARTER)
    known = quarters[place]
    return [*quarters[:place], (known[0] + calls, known[1] + failed), *quarters[place + 1 :]]


class Company(NamedTuple):
    """How the failures of quarters of an hour vary, and how they would if each were alone."""

    apart: float = 0.0
    alone: float = 0.0

    @classmethod
    def of(cls, quarters: Quarters) -> "Company":
        """Return it of the quarters of one hour, whatever the rate of that was."""
        told = [one for one in quarters if one[0]]
        calls, failed = sum(one[0] for one in told), sum(one[1] for one in told)
        if len(told) < 2 or not failed:
            return ALONE
        rate = failed / calls
        apart = sum((bad - each * rate) ** 2 for each, bad in told)
        return cls(apart * len(told) / (len(told) - 1), failed * (1 - rate))

    def plus(self, other: "Company") -> "Company":
        """Return both together."""
        return Company(self.apart + other.apart, self.alone + other.alone)

    def size(self, project: "Company") -> float:
        """Return how many failures come together: shrunk to the project, that to one."""
        size = self._shrink(project._shrink(1.0))
        return min(size, MOST_COMPANY) if size >= LEAST_COMPANY else 1.0

    def _shrink(self, usual: float) -> float:
        return (self.apart + usual * LENT_FAILURES) / (self.alone + LENT_FAILURES)


ALONE = Company()
