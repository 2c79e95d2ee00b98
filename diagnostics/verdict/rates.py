"""How likely counts of failures are, given how often the same calls failed before.

Rates are uncertain: a cell with few failures before has a wide baseline, and the rates of hours
vary by more than chance. Both are squared variations of a beta distribution.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import exp, log
from typing import Any, NamedTuple

from diagnostics.analysis.detectors.noise import log_likelihood, log_sum
from diagnostics.analysis.series import SeriesKey
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.cells import CountCell, Dimensions, unanswered

LEAST_RATE, HIGHEST_RATE = 0.001, 0.97
"""No kind of failure is impossible, and no rate is certain."""
FIRST_RATE = 0.02
"""The rate of all failures where nothing is known."""
LEVEL_FAILURES = (0.5, 1.0, 2.0, 4.0)
"""For each level below the project: how many failures at its parent's rate are added."""
BIAS_FAILURES = 0.5
"""How many failures as often as expected are added to those of a source, node or environment."""
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
DEVIATIONS = NEAR, FAR = 0.35, 0.9
"""Log odds at which a usual rate that is higher than expected is weighed."""

Sent = tuple[SeriesKey, str | None]
"""A series and the source that called it."""
BIASED: Sequence[Callable[[Sent], object]] = (
    lambda sent: ("source", sent[1]),
    lambda sent: ("node", sent[0].node),
    lambda sent: ("environment", sent[0].environment),
)
"""Values that may always fail more often than their models explain."""
BIAS_LEVELS = {2: BIASED[:1], 3: BIASED[1:]}
"""The levels that they come in at."""

MOST_CELLS = 1_500
FORGOTTEN: Sequence[Callable[[Dimensions], Dimensions]] = (
    lambda place: place._replace(credential=None),
    lambda place: place._replace(region=None),
    lambda place: place._replace(schema_version=None),
    lambda place: place._replace(release=None),
    lambda place: place._replace(served=None),
)
"""Of more cells, these dimensions are left out, one after the other."""


def at_odds(rate: float, times: float) -> float:
    return rate * times / (1 - rate + rate * times)


class Rate(NamedTuple):
    """An expected rate and its squared variation."""

    mean: float
    variation: float

    def shifted(self, log_odds: float) -> "Rate":
        return Rate(min(at_odds(self.mean, exp(log_odds)), HIGHEST_RATE), self.variation)

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

    def ratios(self, failed: int, calls: int) -> list[float]:
        """Return how much likelier (log) counts are with each share of hits, then if it is off."""
        others = [self.raised(share, DIFFERING) for share in HIT_SHARES]
        others += map(self.shifted, DEVIATIONS)
        expected = self.log_likelihood(failed, calls)
        return [rate.log_likelihood(failed, calls) - expected for rate in others]


class KindCounts(NamedTuple):
    """Failures of some kinds, the calls that could fail so, and the expected rate."""

    failed: int
    calls: int
    rate: Rate


class Fit(NamedTuple):
    """Log Bayes factors of hit calls and of a usual rate that is off, and the likeliest share."""

    gain: float
    noise: float
    share: float


@dataclass(slots=True)
class RatioTable:
    """Log likelihood ratios of each cell at each share of hits, against its expected rate.

    Behind them those of usual rates that are off, and how many failures tell of its own.
    """

    kinds: tuple[str, ...]
    rows: Sequence[Sequence[float]]
    noise: float
    usual: "RatioTable | None" = None
    """The table without known causes, and the cells whose rates these change."""
    changed: frozenset[int] = frozenset()
    _known: dict[frozenset[int], Fit] = field(default_factory=dict)

    def fit(self, cells: frozenset[int]) -> Fit:
        """Return how well hit calls, or another usual rate, explain the counts of some cells."""
        known = self._known.get(cells)
        if known is None:
            if self.usual and self.changed.isdisjoint(cells):
                known = self.usual.fit(cells)
            else:
                rows = [self.rows[index] for index in cells]
                sums = [sum(column) for column in zip(*rows, strict=True)]
                raised, (near, far, failures) = sums[: len(HIT_SHARES)], sums[len(HIT_SHARES) :]
                known = Fit(
                    log_sum(raised) - log(len(HIT_SHARES)),
                    _if_off(near, far, self.noise + 1 / (KNOWN_MODEL + failures)),
                    HIT_SHARES[raised.index(max(raised))],
                )
            self._known[cells] = known
        return known


def _if_off(near: float, far: float, variation: float) -> float:
    """Return how much likelier (log) counts are if their usual rate is uncertain, all alike.

    The log odds that they are off by are normally distributed. The likelihood is a parabola
    through three points, which holds no further than these.
    """
    bend = min(2 * (far / FAR - near / NEAR) / (FAR - NEAR), 0.0)
    slope, spread = near / NEAR - bend * NEAR / 2, 1 - bend * variation
    off = min(max(slope * variation / spread, -FAR), FAR)
    return slope * off - off * off * spread / variation / 2 - log(spread) / 2


@dataclass(slots=True)
class CellBaseline:
    """Calls and failures before, by level: everything, model, source of it, series, cell."""

    _calls: dict[object, int] = field(default_factory=lambda: defaultdict(int))
    _failures: dict[object, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _rates: dict[tuple[Dimensions, tuple[str, ...]], Rate] = field(default_factory=dict)
    _means: dict[tuple[object, tuple[str, ...]], float] = field(default_factory=dict)
    _sent: dict[Sent, None] = field(default_factory=dict)
    _biases: dict[tuple[str, ...], Mapping[object, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, before: Iterable[CountCell]) -> "CellBaseline":
        return cls._of(tuple(before))

    @classmethod
    @lru_cache(maxsize=8)  # The calls before stay the same until the hour ends.
    def _of(cls, before: tuple[CountCell, ...]) -> "CellBaseline":
        baseline = cls()
        for cell in before:
            for level in (*_levels(cell.place), *_senders(cell.place)):
                baseline._calls[level] += cell.attempts
                if cell.failures:
                    baseline._failures[level].update(cell.failures)
            baseline._sent[cell.place.series, cell.place.source] = None
        return baseline

    def compares(self, place: Dimensions) -> bool:
        """Whether there were calls of the same model, source or node; or none at all."""
        levels = (_levels(place)[1], *_senders(place))
        return not self._calls or any(self._calls.get(level) for level in levels)

    def compared(self, place: Dimensions) -> tuple[object, int]:
        """Return the narrowest level that calls of a place are compared with, and its calls."""
        _, *known, _ = _levels(place)
        counts = ((level, self._calls.get(level, 0)) for level in reversed(known))
        return next((pair for pair in counts if pair[1]), (None, 0))

    def rate(self, place: Dimensions, kinds: tuple[str, ...]) -> Rate:
        """Return the rate of some kinds of failure, each level shrunk towards its parent."""
        known = self._rates.get((place, kinds))
        if known is None:
            levels, (failed, _) = _levels(place), self._count(place, kinds)
            is_known = self._calls.get(levels[1], 0) >= KNOWN_CALLS
            information = (KNOWN_MODEL if is_known else UNKNOWN_MODEL) + failed
            mean = min(self._mean(levels, kinds), HIGHEST_RATE)
            known = self._rates[place, kinds] = Rate(mean, 1 / information)
        return known

    def _biases_of(self, kinds: tuple[str, ...]) -> Mapping[object, float]:
        """Return the odds at which each source, node and environment always fails.

        They are relative to what its models explain, and the values before it.
        """
        known = self._biases.get(kinds)
        if known is None:
            known = dict[object, float]()
            means = {sent: self._mean((None, sent[0][2:]), kinds) for sent in self._sent}
            for of in BIASED:
                sums = defaultdict[object, list[float]](lambda: [BIAS_FAILURES, BIAS_FAILURES])
                for sent, mean in means.items():
                    failed, calls = self._count(sent, kinds)
                    totals = sums[of(sent)]
                    totals[0] += failed
                    totals[1] += calls * mean
                known |= {value: failed / expected for value, (failed, expected) in sums.items()}
                means = {sent: at_odds(mean, known[of(sent)]) for sent, mean in means.items()}
            self._biases[kinds] = known
        return known

    def _mean(self, levels: Sequence[Any], kinds: tuple[str, ...]) -> float:
        """Return the rate of the last level, which many places share all others with."""
        level = levels[-1]
        known = self._means.get((level, kinds))
        if known is not None:
            return known
        failed, calls = self._count(level, kinds)
        *parents, _ = levels
        if not parents:
            share = len(kinds) / len(FAILURE_KINDS)
            mean = (failed + FIRST_RATE * share * KNOWN_CALLS) / (calls + KNOWN_CALLS)
        else:
            mean, added = self._mean(parents, kinds), LEVEL_FAILURES[len(parents) - 1]
            for of in BIAS_LEVELS.get(len(parents), ()):
                mean = at_odds(mean, self._biases_of(kinds).get(of(level), 1.0))
            mean = (failed + added) / (calls + added / mean) if calls else mean
        mean = self._means[level, kinds] = max(mean, LEAST_RATE * min(len(kinds), 3))
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
