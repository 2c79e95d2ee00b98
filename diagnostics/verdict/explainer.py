"""Which calls got worse: the posterior of every subset, given counts before and since.

1. Expected: the rate of each cell before, as uncertain as its counts, and the noise of hours.
2. For every subset and set of kinds: how much likelier are the counts of its cells at raised
   odds than at the expected rate? Effects may differ inside. Odds within the noise of hours
   belong to the hypothesis that nothing got worse.
3. Subsets with the same cells are one answer with several names.
4. The posterior is the prior times the likelihood. What the best answer explains is expected
   from then on, and the rest is explained again; then each cause without the others.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from diagnostics.analysis.detectors.noise import log_sum
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.counted import AddedFailures, CellCounts
from diagnostics.verdict.hypotheses import Subset, mark_prior, pairs_of
from diagnostics.verdict.rates import RatioTable

NOTHING = log(0.5)
LEAST_POINTS = 0.015
"""The least rise of a rate that anybody would want to know of."""
MOST_PAIRED = 14
MOST_CAUSES = 3
MOST_BEGINNINGS = 4
NOTHING_MORE = log(20)
"""The log prior weight of no further cause."""
ANOTHER = log(20)
"""The least log Bayes factor of a further cause."""
NO_RISE = -20.0
"""The gain of a subset whose failures did not rise in all."""


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


@dataclass(slots=True)
class _Scored:
    subset: Subset
    gain: float
    """Log Bayes factor of raised odds over the sets of kinds."""
    noise: float
    """The same of odds within the noise of hours."""
    kinds: tuple[str, ...]


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
    total_prior = log_sum([score.subset.log_prior for score in scored])
    nothing = NOTHING + log_sum(
        [score.subset.log_prior - total_prior + score.noise for score in scored]
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
