"""The cells since an onset, with what is expected of them: the rate of each before.

It is as uncertain as its counts, and the noise of hours.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from diagnostics.analysis.series import SeriesKey
from diagnostics.queries.call_counts import UNSAID
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.cells import TRANSPORT, CountCell, Dimensions
from diagnostics.verdict.hypotheses import UNTIMED, Part, Subset, Timing, singles_of, surged_pairs
from diagnostics.verdict.rates import DIFFERING, CellBaseline, KindCounts, Rate, RatioTable, bounded

TEMPER = 0.8
"""The most that the likelihood weighs: counts are less independent than the model says."""
LENT_FAILURES = 10.0
"""Failures, each in a run with no other, that are assumed beside those counted."""
MOST_KINDS = 6
SAID = frozenset(FAILURE_KINDS) - TRANSPORT - {UNSAID}
"""The kinds of bad answers that senders name."""
MOST_UNSAID = 0.2
"""With a larger share of failures whose kind is not reported, kinds tell nothing apart."""
COMPARED = 0.05
"""The squared variation of the rate of many calls together."""


@dataclass(frozen=True, slots=True)
class AddedFailures:
    """What a cause adds to the expected rates of its cells."""

    cells: frozenset[int]
    added: Mapping[str, float]
    """Added to the rate, by kind."""
    share: float

    def of_kinds(self, kinds: Iterable[str]) -> float:
        """Return what is added to the rate of some kinds together."""
        return sum(self.added.get(kind, 0.0) for kind in kinds)


@dataclass(slots=True)
class CellCounts:
    """The cells since the onset, their baseline, and the noise of hours."""

    cells: Sequence[CountCell]
    baseline: CellBaseline
    noise: float
    """The squared variation of the rate of a stretch as long as this one."""
    singles: Sequence[Subset]
    surged: Collection[frozenset[Part]] = ()
    """The sources and models that are called together much more than before."""
    fired: Collection[SeriesKey] | None = None
    """The series that degrade by their own detectors; None if all may."""
    unsaying: Collection[str | None] = ()
    """The sources that never say how an answer was bad."""
    temper: float = TEMPER
    """The weight of the likelihood."""
    _told: Sequence[float] = field(init=False)
    """The calls before that tell of the own rate of each cell: its share of those compared."""
    _counts: dict[tuple[int, tuple[str, ...]], KindCounts] = field(default_factory=dict)
    _ratios: dict[tuple[int, tuple[str, ...], Rate], Sequence[float]] = field(default_factory=dict)
    _tables: dict[tuple[str, ...], RatioTable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        compared = [self.baseline.compared(cell.place) for cell in self.cells]
        sharing = Counter(level for level, _ in compared)
        self._told = [known / sharing[level] for level, known in compared]

    @classmethod
    def of(
        cls,
        cells: Iterable[CountCell],
        before: Iterable[CountCell],
        timing: Timing = UNTIMED,
        noise: float = 0.0,
        fired: Collection[SeriesKey] | None = None,
    ) -> "CellCounts":
        """Return counts of a stretch, given a healthy one before it."""
        merged, before = bounded(cells := list(cells), list(before))
        # Calls of a version just before the onset may be its first failing ones: no baseline.
        new_places = {version.place for version in timing.begun}
        known = {cell.place.source for cell in before if cell.place.versions not in new_places}
        recent = {version for version in new_places if version.source in known}
        earlier = [cell for cell in before if cell.place.versions not in recent and cell.attempts]
        singles = singles_of(merged, earlier, timing)
        reported = defaultdict[str | None, set[str]](set)
        for cell in (*merged, *before):
            reported[cell.place.source] |= cell.failures.keys()
        unsaying = {name for name, said in reported.items() if UNSAID in said and not said & SAID}
        baseline, surged = CellBaseline.of(earlier), surged_pairs(merged, earlier)
        temper = min(TEMPER, 1 / failures_together(cells))
        return cls(merged, baseline, noise, singles, surged, fired, unsaying, temper)

    def said(self, place: Dimensions, kinds: tuple[str, ...]) -> tuple[str, ...]:
        """Return kinds as their sender reports them: what it never says may be any of them."""
        is_any = place.source in self.unsaying and UNSAID not in kinds
        return kinds if not is_any or SAID.isdisjoint(kinds) else (*kinds, UNSAID)

    def counts(self, index: int, kinds: tuple[str, ...]) -> KindCounts:
        """Return the failures of some kinds in a cell, beside what is expected."""
        known = self._counts.get((index, kinds))
        if known is None:
            cell = self.cells[index]
            kinds_reported = self.said(cell.place, kinds)
            rate = self.baseline.rate(cell.place, kinds_reported)
            rate = Rate(rate.mean, rate.variation + self.noise)
            known = self._counts[index, kinds] = KindCounts(*cell.of_kinds(kinds_reported), rate)
        return known

    def rate(self, index: int, kinds: tuple[str, ...], taken: Sequence[AddedFailures]) -> Rate:
        """Return the expected rate of a cell, with what known causes add to it."""
        known = self.counts(index, kinds).rate
        for excess in taken:
            if index in excess.cells and (added := excess.of_kinds(kinds)):
                known = known.raised(added, DIFFERING)
        return known

    def table(self, kinds: tuple[str, ...], taken: Sequence[AddedFailures] = ()) -> RatioTable:
        """Return the likelihood ratios of all cells, most of which no known cause touches."""
        usual = self._tables.get(kinds)
        if usual is None:
            rows = [self.ratios(index, kinds, ()) for index in range(len(self.cells))]
            usual = self._tables[kinds] = RatioTable(kinds, rows, self.noise)
        touching = [excess for excess in taken if excess.of_kinds(kinds)]
        if not touching:
            return usual
        rows = list(usual.rows)
        changed = frozenset[int]().union(*(excess.cells for excess in touching))
        for index in changed:
            rows[index] = self.ratios(index, kinds, touching)
        return RatioTable(kinds, rows, self.noise, usual, changed)

    def ratios(
        self, index: int, kinds: tuple[str, ...], taken: Sequence[AddedFailures]
    ) -> Sequence[float]:
        """Return how much likelier (log) a cell is with each share of hits, then if it is off.

        At the end what tells of its own rate: its share of the failures of its series and source.
        """
        rate = self.rate(index, kinds, taken)
        row = self._ratios.get((index, kinds, rate))
        if row is None:
            failed, calls, usual = self.counts(index, kinds)
            row = rate.ratios(failed, calls)
            if not self._speaks(self.cells[index].place):
                row = [0.0] * len(row)
            row.append(self._told[index] * usual.mean)
            self._ratios[index, kinds, rate] = row
        return row

    def _speaks(self, place: Dimensions) -> bool:
        """Whether calls are evidence: a new sender of a new model is, once its detector fired."""
        has_fired = self.fired is None or place.series in self.fired
        return has_fired or self.baseline.compares(place)

    def kind_sets(self) -> list[tuple[str, ...]]:
        """Return the sets of kinds that may have risen together."""
        totals = Counter[str]()
        for cell in self.cells:
            totals.update(cell.failures)
        present = [kind for kind, count in totals.most_common(MOST_KINDS) if count]
        if totals[UNSAID] > MOST_UNSAID * totals.total():
            return [tuple(present)]
        answers = tuple(kind for kind in present if kind not in TRANSPORT)
        silent = tuple(kind for kind in present if kind in TRANSPORT)
        sets = [(kind,) for kind in present]
        several = {tuple(present), answers, silent}
        return sets + sorted(kinds for kinds in several if len(kinds) > 1)


def failures_together(cells: Iterable[CountCell]) -> float:
    """Return how many failures a run with any has: they are less evidence than so many runs."""
    failed, runs = Counter[str | None](), Counter[str | None]()
    for cell in cells:
        failed[cell.place.source] += cell.failed
        runs[cell.place.source] += cell.degraded + cell.repaired
    known = [max(failed[source], count) for source, count in runs.items() if count]
    return (LENT_FAILURES + sum(known)) / (LENT_FAILURES + runs.total())


def excess_in(counted: CellCounts, cells: Iterable[int], kinds: tuple[str, ...]) -> float:
    """Return failures of some kinds minus what is expected (may be below zero)."""
    counts = (counted.counts(index, kinds) for index in cells)
    return sum(failed - calls * rate.mean for failed, calls, rate in counts)


def risen_kinds(cells: Collection[int], counted: CellCounts, part: float) -> tuple[str, ...]:
    """Return the kinds that rose by a part of the largest rise or more, the largest first."""
    present = {kind for index in cells for kind in counted.cells[index].failures}
    excess = {k: excess_in(counted, cells, (k,)) for k in FAILURE_KINDS if k in present}
    ranked = sorted(excess, key=excess.__getitem__, reverse=True)
    least = max(excess.values(), default=0.0) * part
    return tuple(kind for kind in ranked if excess[kind] > 0 and excess[kind] >= least)


def wellness(
    counted: CellCounts, kinds: tuple[str, ...], share: float, cells: Sequence[CountCell]
) -> float:
    """Return how much likelier (log) calls are as expected than with a share of them hit."""
    calls, failed, expected = count_kinds(counted, kinds, cells)
    if not calls:
        return 0.0
    rate = Rate(expected / calls, COMPARED + counted.noise)
    hit = rate.raised(share, COMPARED)
    # What fails in another way is not well.
    well = failed + sum(cell.attempts - cell.failed for cell in cells)
    return rate.log_likelihood(failed, well) - hit.log_likelihood(failed, well)


def count_kinds(
    counted: CellCounts, kinds: tuple[str, ...], cells: Iterable[CountCell]
) -> tuple[int, int, float]:
    """Return calls, failures of some kinds, and how many of these were to be expected.

    The calls are those that could fail so.
    """
    calls = failed = 0
    expected = 0.0
    for cell in cells:
        kinds_reported = counted.said(cell.place, kinds)
        count, remaining = cell.of_kinds(kinds_reported)
        calls += remaining
        failed += count
        expected += remaining * counted.baseline.rate(cell.place, kinds_reported).mean
    return calls, failed, expected
