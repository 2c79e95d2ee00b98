"""Which calls got worse: the posterior of every subset, given counts before and since.

1. Expected: the rate of each cell before, as uncertain as its counts, and the noise of hours.
2. For every subset and set of kinds: how much likelier are the counts of its cells at raised
   odds than at the expected rate? Effects may differ inside. Odds within the noise of hours
   belong to the hypothesis that nothing got worse.
3. Subsets with the same cells are one answer with several names.
4. The posterior is the prior times the likelihood. What the best answer explains is expected
   from then on, and the rest is explained again; then each cause without the others.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log

from diagnostics.analysis.series import SeriesKey
from diagnostics.queries.call_counts import UNSAID
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.cells import TRANSPORT, CountCell, Dimensions
from diagnostics.verdict.hypotheses import (
    UNTIMED,
    Part,
    Subset,
    Timing,
    mark_prior,
    pairs_of,
    singles_of,
    surged_pairs,
)
from diagnostics.verdict.rates import (
    DIFFERING,
    CellBaseline,
    KindCounts,
    Rate,
    RatioTable,
    bounded,
    log_sum,
)

TEMPER = 0.8
"""The most that the likelihood weighs: counts are less independent than the model says."""
LENT_FAILURES = 10.0
"""Failures, each in a run with no other, that are assumed beside those counted."""
NOTHING = log(0.5)
MOST_KINDS = 6
SAID = frozenset(FAILURE_KINDS) - TRANSPORT - {UNSAID}
"""The kinds of bad answers that senders name."""
LEAST_POINTS = 0.015
"""The least rise of a rate that anybody would want to know of."""
MOST_UNSAID = 0.2
"""With a larger share of failures whose kind is not reported, kinds tell nothing apart."""
MOST_PAIRED = 14
MOST_CAUSES = 3
MOST_BEGINNINGS = 4
NOTHING_MORE = log(20)
"""The log prior weight of no further cause."""
ANOTHER = log(20)
"""The least log Bayes factor of a further cause."""
NO_RISE = -20.0
"""The gain of a subset whose failures did not rise in all."""
COMPARED = 0.05
"""The squared variation of the rate of many calls together."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Subsets that touch the same cells, and the kinds of failure that rose in them."""

    subsets: tuple[Subset, ...]
    """By their share of the posterior, the largest first."""
    names: tuple[float, ...]
    """The share of the posterior of each subset."""
    kinds: tuple[str, ...]
    probability: float
    gain: float
    """Log Bayes factor against the expected rates."""
    weight: float
    """The same with the prior: its log weight against nothing."""

    @property
    def cells(self) -> frozenset[int]:
        """Return the indexes of the touched cells."""
        return self.subsets[0].cells


@dataclass(frozen=True, slots=True)
class Posterior:
    """The answers to one question, the most probable first, and the rest: nothing rose."""

    answers: Sequence[Explanation]
    nothing: float


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


def posterior_of(counted: CellCounts, taken: Sequence[AddedFailures] = ()) -> Posterior:
    """Return how probable every answer is, beside known causes."""
    kind_sets = counted.kind_sets()
    if not kind_sets:
        return Posterior((), 1.0)
    tables = [counted.table(kinds, taken) for kinds in kind_sets]
    above = [_above_least(counted, index, taken) for index in range(len(counted.cells))]
    temper = counted.temper
    scored = [_score(subset, tables, above, temper) for subset in counted.singles]
    best = sorted(scored, key=lambda score: -score.gain)[:MOST_PAIRED]
    pairs = pairs_of([score.subset for score in best], counted.singles, counted.surged)
    scored += [_score(pair, tables, above, temper) for pair in pairs]
    return _normalise(scored)


def explain(counted: CellCounts) -> list[tuple[Explanation, Posterior]]:
    """Return the causes of what got worse, each with the posterior beside the others.

    The best answer may be two causes seen as one: the search begins at each of the best few,
    and what explains most in all is kept.
    """
    posterior = posterior_of(counted)
    beginnings = posterior.answers[:MOST_BEGINNINGS]
    searches = (_search(counted, answer, posterior) for answer in beginnings)
    distinct = {frozenset(answer.cells for answer, _ in answers): answers for answers in searches}
    fitted = (_refit(counted, some) if len(some) > 1 else some for some in distinct.values())
    return max(fitted, key=lambda answers: _weight(counted, answers), default=[])


def _search(
    counted: CellCounts, first: Explanation, posterior: Posterior
) -> list[tuple[Explanation, Posterior]]:
    """Return a cause and what further ones explain."""
    answers = [(first, posterior)]
    taken = [excess_of_answer(counted, first)]
    while len(answers) < MOST_CAUSES:
        posterior = posterior_of(counted, taken)
        others = [answer for answer, _ in answers]
        answer = _first_beside(counted, posterior, others, taken)
        if answer is None:
            break
        answers.append((answer, posterior))
        taken.append(excess_of_answer(counted, answer, taken))
    return answers


def _weight(counted: CellCounts, answers: Sequence[tuple[Explanation, Posterior]]) -> float:
    """Return the log weight of causes together, each beside those before it."""
    weight, taken = 0.0, list[AddedFailures]()
    for answer, _ in answers:
        subset, table = answer.subsets[0], counted.table(answer.kinds, taken)
        weight += table.fit(subset.cells).gain * counted.temper - NOTHING_MORE
        weight += subset.log_prior + mark_prior(subset, answer.kinds)
        taken.append(excess_of_answer(counted, answer, taken))
    return weight


def _first_beside(
    counted: CellCounts,
    posterior: Posterior,
    others: Sequence[Explanation],
    taken: Sequence[AddedFailures],
) -> Explanation | None:
    """Return the most probable answer that shows beside others, if any is likely enough."""
    likely = (answer for answer in posterior.answers if answer.weight >= NOTHING_MORE)
    shown = (answer for answer in likely if _shows_beside(counted, answer, others, taken))
    return next(shown, None)


def _shows_beside(
    counted: CellCounts,
    answer: Explanation,
    others: Sequence[Explanation],
    taken: Sequence[AddedFailures],
) -> bool:
    """Whether a cause shows where others with its kinds are not: effects may differ inside.

    Causes of one kind that are together a single subset are that one, with differing effects.
    """
    parts, shared = set(answer.subsets[0].parts), frozenset[int]()
    for other in others:
        are_pairs = len(parts) > 1 and len(other.subsets[0].parts) > 1
        if are_pairs and not parts.isdisjoint(other.subsets[0].parts):
            return False
        if not set(answer.kinds).isdisjoint(other.kinds):
            shared |= other.cells
    if shared and any(shared | answer.cells == single.cells for single in counted.singles):
        return False
    cells = answer.cells - shared
    gain = counted.table(answer.kinds, taken).fit(cells).gain if cells else 0.0
    return gain * counted.temper >= ANOTHER


def _refit(
    counted: CellCounts, found: Sequence[tuple[Explanation, Posterior]]
) -> list[tuple[Explanation, Posterior]]:
    """Return each cause again, beside the others; what the others explain is dropped."""
    answers = [answer for answer, _ in found]
    refitted: list[tuple[Explanation, Posterior]] = []
    for index in range(len(answers)):
        others = [answer for place, answer in enumerate(answers) if place != index]
        taken: list[AddedFailures] = []
        for other in others:
            taken.append(excess_of_answer(counted, other, taken))
        posterior = posterior_of(counted, taken)
        best = _first_beside(counted, posterior, others, taken)
        if best is not None:
            answers[index] = best
            refitted.append((best, posterior))
    kept = {answer[0].cells: answer for answer in reversed(refitted)}
    return list(kept.values())[::-1] or [found[0]]


def excess_of_answer(
    counted: CellCounts, answer: Explanation, taken: Sequence[AddedFailures] = ()
) -> AddedFailures:
    added = {}
    for kind in answer.kinds:
        rates = {index: counted.rate(index, (kind,), taken).mean for index in answer.cells}
        counts = {index: counted.counts(index, (kind,)) for index in answer.cells}
        more = sum(counts[index].failed - counts[index].calls * rates[index] for index in rates)
        added[kind] = max(more / max(sum(count.calls for count in counts.values()), 1), 0.0)
    share = counted.table(answer.kinds, taken).fit(answer.cells).share
    return AddedFailures(answer.cells, added, share)


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


@dataclass(slots=True)
class _Scored:
    subset: Subset
    gain: float
    """Log Bayes factor of raised odds over the sets of kinds."""
    noise: float
    """The same of odds within the noise of hours."""
    kinds: tuple[str, ...]


def failures_together(cells: Iterable[CountCell]) -> float:
    """Return how many failures a run with any has: they are less evidence than so many runs."""
    failed, runs = Counter[str | None](), Counter[str | None]()
    for cell in cells:
        failed[cell.place.source] += cell.failed
        runs[cell.place.source] += cell.degraded + cell.repaired
    known = [max(failed[source], count) for source, count in runs.items() if count]
    return (LENT_FAILURES + sum(known)) / (LENT_FAILURES + runs.total())


def _above_least(counted: CellCounts, index: int, taken: Sequence[AddedFailures]) -> float:
    """Return the failures of a cell above what is expected and the least degradation."""
    cell, rate = counted.cells[index], counted.rate(index, FAILURE_KINDS, taken)
    return cell.failed - cell.attempts * (rate.mean + LEAST_POINTS)


def _score(
    subset: Subset, tables: Sequence[RatioTable], above: Sequence[float], temper: float
) -> _Scored:
    fits, gains = [table.fit(subset.cells) for table in tables], [NO_RISE] * len(tables)
    if sum(above[index] for index in subset.cells) >= 0:
        gains = [
            fit.gain * temper + mark_prior(subset, table.kinds)
            for fit, table in zip(fits, tables, strict=True)
        ]
    best = max(range(len(gains)), key=gains.__getitem__)
    noise = max(fit.noise for fit in fits)
    gain = log_sum(gains) - log(len(tables))
    return _Scored(subset, gain, noise * temper, tables[best].kinds)


def _normalise(scored: Sequence[_Scored]) -> Posterior:
    by_cells: dict[frozenset[int], list[_Scored]] = defaultdict(list)
    for score in scored:
        by_cells[score.subset.cells].append(score)
    total_prior = log_sum(score.subset.log_prior for score in scored)
    nothing = NOTHING + log_sum(
        score.subset.log_prior - total_prior + score.noise for score in scored
    )
    weights = {
        cells: [score.subset.log_prior + score.gain for score in scores]
        for cells, scores in by_cells.items()
    }
    total = log_sum([nothing, *(weight for all_ in weights.values() for weight in all_)])
    answers = []
    for cells, scores in by_cells.items():
        whole = log_sum(weights[cells])
        ranked = sorted(zip(weights[cells], scores, strict=True), key=lambda pair: -pair[0])
        answers.append(
            Explanation(
                tuple(score.subset for _, score in ranked),
                tuple(exp(weight - whole) for weight, _ in ranked),
                ranked[0][1].kinds,
                exp(whole - total),
                max(score.gain for score in scores),
                whole - (nothing - NOTHING),
            )
        )
    answers.sort(key=lambda answer: -answer.probability)
    return Posterior(answers, exp(nothing - total))
