"""How likely counts of failures are, given how often the same calls failed before.

Rates are uncertain: a cell with few failures before has a wide baseline, and the rates of hours
vary by more than chance. Both are squared variations of a beta distribution.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, lgamma, log
from typing import NamedTuple

from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.cells import CountCell, Dimensions, unanswered

LEAST_RATE, HIGHEST_RATE = 0.001, 0.97
"""No kind of failure is impossible, and no rate is certain."""
FIRST_RATE = 0.02
"""The rate of all failures where nothing is known."""
LEVEL_FAILURES = (0.5, 1.0, 2.0, 4.0)
"""For each level below the project: how many failures at its parent's rate are added."""
KNOWN_MODEL, UNKNOWN_MODEL = 4.0, 1.0
"""The information of a rate (in failures) for a cell without calls before."""
KNOWN_CALLS = 50
USUAL_NOISE, NOISE_WEIGHT = 0.1, 30.0
"""The squared variation of hours to start from, and its weight in expected failures."""
HIGHEST_NOISE = 1.0


class Rate(NamedTuple):
    """An expected rate and its squared variation."""

    mean: float
    variation: float

    def shifted(self, log_odds: float, variation: float = 0.0) -> "Rate":
        """Return the rate at other odds, with more variation."""
        odds = self.mean / (1 - self.mean) * exp(log_odds)
        return Rate(min(odds / (1 + odds), HIGHEST_RATE), self.variation + variation)

    def raised(self, added: float, variation: float) -> "Rate":
        """Return the rate if a share of the calls that succeeded fails, which varies, too."""
        more = added * (1 - self.mean)
        mean = min(self.mean + more, HIGHEST_RATE)
        spread = self.variation * self.mean**2 + variation * more**2
        return Rate(mean, spread / mean**2)

    def log_likelihood(self, failed: int, calls: int) -> float:
        """Return the logarithm of the beta-binomial, without the binomial coefficient."""
        bad = 1 / self.variation
        good = bad * (1 - self.mean) / self.mean
        whole = bad + good
        result = lgamma(good + calls - failed) - lgamma(good) - lgamma(whole + calls)
        result += lgamma(whole)
        return result + (lgamma(bad + failed) - lgamma(bad) if failed else 0.0)


@dataclass(slots=True)
class CellBaseline:
    """Calls and failures before, by level: everything, model, source of it, series, cell."""

    _calls: dict[object, int] = field(default_factory=lambda: defaultdict(int))
    _failures: dict[object, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @classmethod
    def of(cls, before: Iterable[CountCell]) -> "CellBaseline":
        """Return the baseline of a stretch."""
        baseline = cls()
        for cell in before:
            for level in (*_levels(cell.place), *_senders(cell.place)):
                baseline._calls[level] += cell.attempts
                baseline._failures[level].update(cell.failures)
        return baseline

    def calls(self, place: Dimensions) -> int:
        """Return how many calls of a cell there were."""
        return self._calls.get(_levels(place)[-1], 0)

    def compares(self, place: Dimensions) -> bool:
        """Whether there were calls of the same model, source or node; or none at all."""
        levels = (_levels(place)[1], *_senders(place))
        return not self._calls or any(self._calls.get(level) for level in levels)

    def rate(self, place: Dimensions, kinds: Sequence[str]) -> Rate:
        """Return the rate of some kinds of failure, each level shrunk towards its parent."""
        levels = _levels(place)
        failed, calls = self._count(levels[0], kinds)
        share = len(kinds) / len(FAILURE_KINDS)
        mean = (failed + FIRST_RATE * share * KNOWN_CALLS) / (calls + KNOWN_CALLS)
        least = LEAST_RATE * min(len(kinds), 3)
        mean = max(mean, least)
        for level, added in zip(levels[1:], LEVEL_FAILURES, strict=True):
            failed, calls = self._count(level, kinds)
            if calls:
                mean = max((failed + added) / (calls + added / mean), least)
        is_known = self._calls.get(levels[1], 0) >= KNOWN_CALLS
        information = (KNOWN_MODEL if is_known else UNKNOWN_MODEL) + failed
        return Rate(min(mean, HIGHEST_RATE), 1 / information)

    def _count(self, level: object, kinds: Sequence[str]) -> tuple[int, int]:
        failures = self._failures.get(level)
        if not failures:
            return 0, self._calls.get(level, 0)
        failed = sum(failures[kind] for kind in kinds)
        return failed, self._calls[level] - unanswered(failures, kinds)


def _levels(place: Dimensions) -> tuple[object, ...]:
    model = place.provider, place.model
    return None, model, (model, place.source), (place.series, place.source), place


def _senders(place: Dimensions) -> tuple[object, ...]:
    return ("source", place.source), ("node", place.node)


def noise_of_hours(rows: Iterable[Sequence[tuple[int, int]]]) -> float:
    """Return the squared variation of hourly rates, from (calls, failures) of each series.

    What the hours vary by beyond chance, over the square of what is expected of them.
    """
    varied, expected_square = USUAL_NOISE * NOISE_WEIGHT, NOISE_WEIGHT
    for hours in rows:
        calls, failed = (sum(column) for column in zip(*hours, strict=True)) if hours else (0, 0)
        if failed:
            rate = failed / calls
            varied += sum((k - n * rate) ** 2 - n * rate * (1 - rate) for n, k in hours)
            expected_square += sum((n * rate) ** 2 for n, _ in hours)
    return min(max(varied / expected_square, 0.0), HIGHEST_NOISE)


def log_sum(terms: Iterable[float]) -> float:
    """Return the logarithm of the sum of exponentials."""
    values = list(terms)
    largest = max(values)
    return largest + log(sum(exp(value - largest) for value in values))


def add_counts(cells: Iterable[CountCell]) -> Iterator[CountCell]:
    """Yield the calls and failures of each place in one cell."""
    calls, failures = Counter[Dimensions](), defaultdict[Dimensions, Counter[str]](Counter)
    for cell in cells:
        calls[cell.place] += cell.attempts
        failures[cell.place].update(cell.failures)
    return (CountCell(place, count, failures[place]) for place, count in calls.items())
