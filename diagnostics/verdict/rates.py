"""How likely counts of failures are, given how often the same calls failed before.

Rates are uncertain: a cell with few failures before has a wide baseline, and the rates of hours
vary by more than chance. Both are squared variations of a beta distribution.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log, sqrt
from typing import NamedTuple

from diagnostics.analysis.detectors.noise import log_likelihood
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.cells import CountCell, Dimensions, unanswered

LEAST_RATE, HIGHEST_RATE = 0.001, 0.97
"""No kind of failure is impossible, and no rate is certain."""
FIRST_RATE = 0.02
"""The rate of all failures where nothing is known."""
LEVEL_FAILURES = (0.5, 1.0, 2.0, 4.0)
"""For each level below the project: how many failures at its parent's rate are added."""
OF_SOURCE, SOURCE_FAILURES = 2, 0.5
"""The first level of a source; how many failures at the rates of its models are added to it."""
KNOWN_MODEL, UNKNOWN_MODEL = 4.0, 1.0
"""The information of a rate (in failures) for a cell without calls before."""
KNOWN_CALLS = 50
USUAL_NOISE, NOISE_WEIGHT = 0.1, 30.0
"""The squared variation of hours to start from, and its weight in expected failures."""
HIGHEST_NOISE = 1.0

HIT_SHARES = (0.03, 0.06, 0.11, 0.2, 0.33, 0.5, 0.7, 0.9)
"""The share of calls that a cause may have made fail, each as likely as the others."""
DIFFERING = 0.3
"""The squared variation of an effect inside a subset."""
NOISE = (-sqrt(3), sqrt(3))
"""Deviations of an hour."""
DEVIATES, CALM = log(1 / 6), log(2 / 3)
"""The log weights of each, and of none."""

MOST_CELLS = 1_500
FORGOTTEN: Sequence[Callable[[Dimensions], Dimensions]] = (
    lambda place: place._replace(credential=None),
    lambda place: place._replace(region=None),
    lambda place: place._replace(schema_version=None),
    lambda place: place._replace(release=None),
    lambda place: place._replace(served=None),
)
"""Of more cells, these dimensions are left out, one after the other."""


class Rate(NamedTuple):
    """An expected rate and its squared variation."""

    mean: float
    variation: float

    def shifted(self, log_odds: float) -> "Rate":
        """Return the rate at other odds."""
        odds = self.mean / (1 - self.mean) * exp(log_odds)
        return Rate(min(odds / (1 + odds), HIGHEST_RATE), self.variation)

    def raised(self, added: float, variation: float) -> "Rate":
        """Return the rate if a share of the calls that succeeded fails, which varies, too."""
        more = added * (1 - self.mean)
        mean = min(self.mean + more, HIGHEST_RATE)
        spread = self.variation * self.mean**2 + variation * more**2
        return Rate(mean, spread / mean**2)

    def log_likelihood(self, failed: int, calls: int) -> float:
        """Return the logarithm of the beta-binomial, without the binomial coefficient."""
        bad = 1 / self.variation
        return log_likelihood(bad, bad * (1 - self.mean) / self.mean, calls, failed)

    def ratios(self, failed: int, calls: int, deviation: float) -> list[float]:
        """Return how much likelier (log) counts are with each share of hits, then with noise."""
        others = [self.raised(share, DIFFERING) for share in HIT_SHARES]
        others += [self.shifted(far * deviation) for far in NOISE]
        expected = self.log_likelihood(failed, calls)
        return [one.log_likelihood(failed, calls) - expected for one in others]


class KindCounts(NamedTuple):
    """Failures of some kinds, the calls that could fail so, and the expected rate."""

    failed: int
    calls: int
    rate: Rate


class Fit(NamedTuple):
    """Log Bayes factors of hit calls and of the noise of hours, and the likeliest share of hits."""

    gain: float
    noise: float
    share: float


@dataclass(slots=True)
class RatioTable:
    """Log likelihood ratios of each cell at each share of hits, against its expected rate."""

    kinds: tuple[str, ...]
    rows: Sequence[Sequence[float]]
    usual: "RatioTable | None" = None
    """The table without known causes, and the cells whose rates these change."""
    changed: frozenset[int] = frozenset()
    _known: dict[frozenset[int], Fit] = field(default_factory=dict)

    def fit(self, cells: frozenset[int]) -> Fit:
        """Return how well hit calls, or the noise of hours, explain the counts of some cells."""
        known = self._known.get(cells)
        if known is None:
            if self.usual and self.changed.isdisjoint(cells):
                known = self.usual.fit(cells)
            else:
                rows = [self.rows[index] for index in cells]
                sums = [sum(column) for column in zip(*rows, strict=True)]
                raised, moved = sums[: len(HIT_SHARES)], sums[len(HIT_SHARES) :]
                known = Fit(
                    log_sum(raised) - log(len(HIT_SHARES)),
                    log_sum([CALM, *(DEVIATES + total for total in moved)]),
                    HIT_SHARES[raised.index(max(raised))],
                )
            self._known[cells] = known
        return known


@dataclass(slots=True)
class CellBaseline:
    """Calls and failures before, by level: everything, model, source of it, series, cell."""

    _calls: dict[object, int] = field(default_factory=lambda: defaultdict(int))
    _failures: dict[object, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _rates: dict[tuple[Dimensions, tuple[str, ...]], Rate] = field(default_factory=dict)
    _means: dict[tuple[object, tuple[str, ...]], float] = field(default_factory=dict)
    _callers: dict[str | None, set[object]] = field(default_factory=lambda: defaultdict(set))
    """The models that each source calls."""
    _ratios: dict[tuple[str | None, tuple[str, ...]], float] = field(default_factory=dict)

    @classmethod
    def of(cls, before: Iterable[CountCell]) -> "CellBaseline":
        """Return the baseline of a stretch."""
        baseline = cls()
        for cell in before:
            for level in (*_levels(cell.place), *_senders(cell.place)):
                baseline._calls[level] += cell.attempts
                if cell.failures:
                    baseline._failures[level].update(cell.failures)
            baseline._callers[cell.place.source].add(_levels(cell.place)[1])
        return baseline

    def compares(self, place: Dimensions) -> bool:
        """Whether there were calls of the same model, source or node; or none at all."""
        levels = (_levels(place)[1], *_senders(place))
        return not self._calls or any(self._calls.get(level) for level in levels)

    def rate(self, place: Dimensions, kinds: tuple[str, ...]) -> Rate:
        """Return the rate of some kinds of failure, each level shrunk towards its parent."""
        known = self._rates.get((place, kinds))
        if known is None:
            levels, (failed, _) = _levels(place), self._count(place, kinds)
            is_known = self._calls.get(levels[1], 0) >= KNOWN_CALLS
            information = (KNOWN_MODEL if is_known else UNKNOWN_MODEL) + failed
            mean = min(self._mean(levels, kinds, place.source), HIGHEST_RATE)
            known = self._rates[place, kinds] = Rate(mean, 1 / information)
        return known

    def _ratio(self, source: str | None, kinds: tuple[str, ...]) -> float:
        """Return how many times more often the calls of a source fail than its models explain."""
        known = self._ratios.get((source, kinds))
        if known is None:
            failed = expected = SOURCE_FAILURES
            for model in self._callers[source]:
                bad, calls = self._count((model, source), kinds)
                failed += bad
                expected += calls * self._mean((None, model), kinds)
            known = self._ratios[source, kinds] = failed / expected
        return known

    def _mean(
        self, levels: Sequence[object], kinds: tuple[str, ...], source: str | None = None
    ) -> float:
        """Return the rate of the last level, which many places share all others with."""
        known = self._means.get((levels[-1], kinds))
        if known is not None:
            return known
        failed, calls = self._count(levels[-1], kinds)
        *parents, _ = levels
        if not parents:
            share = len(kinds) / len(FAILURE_KINDS)
            mean = (failed + FIRST_RATE * share * KNOWN_CALLS) / (calls + KNOWN_CALLS)
        else:
            mean, added = self._mean(parents, kinds, source), LEVEL_FAILURES[len(parents) - 1]
            if len(parents) == OF_SOURCE:
                odds = mean / (1 - mean) * self._ratio(source, kinds)
                mean = odds / (1 + odds)
            mean = (failed + added) / (calls + added / mean) if calls else mean
        mean = self._means[levels[-1], kinds] = max(mean, LEAST_RATE * min(len(kinds), 3))
        return mean

    def _count(self, level: object, kinds: tuple[str, ...]) -> tuple[int, int]:
        calls, failures = self._calls.get(level, 0), self._failures.get(level)
        if not failures:
            return 0, calls
        return sum(failures[kind] for kind in kinds), calls - unanswered(failures, kinds)


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


def bounded(
    cells: list[CountCell], before: list[CountCell]
) -> tuple[list[CountCell], list[CountCell]]:
    """Return one cell of each place; of too many without the dimensions that tell least."""
    merged = [cell for cell in add_counts(cells) if cell.attempts]
    for forget in FORGOTTEN:
        if len(merged) <= MOST_CELLS:
            break
        merged, before = (
            [replace(cell, place=forget(cell.place)) for cell in part] for part in (merged, before)
        )
        merged = list(add_counts(merged))
    return merged, before
