"""What the explainer says of drawn stories, beside the truth."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.verdict_families.asking import counted_of, place_of, timing_of
from bench.verdict_families.worlds import Counts, Drawn
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.verdict.cause import Cause, Finding
from diagnostics.verdict.counted import CellCounts
from diagnostics.verdict.explainer import Posterior, excess_of_answer, posterior_of
from diagnostics.verdict.findings import MOST_NOTHING, NAMED, judge_counted
from diagnostics.verdict.knowledge import names_of
from diagnostics.verdict.wording import cause_words

CERTAIN = 100
"""How many times more calls before the oracle has."""


@dataclass(frozen=True, slots=True)
class Card:
    """One cause as the product names it, or as mixed."""

    finding: Finding
    posterior: Posterior

    @property
    def is_named(self) -> bool:
        return self.finding.cause is not Cause.MIXED

    @property
    def says_not_us(self) -> bool:
        return "not us" in cause_words(self.finding)

    @property
    def name(self) -> tuple[str, str]:
        """Return the cause, or the likeliest, and its value without its schema or source."""
        finding = self.finding
        likeliest = finding.alternatives[0] if finding.alternatives else (finding.cause, "")
        cause, value = (finding.cause, finding.value) if self.is_named else likeliest
        is_version = cause in {Cause.SCHEMA, Cause.RELEASE}
        return str(cause), value.rpartition(" ")[2] if is_version else value


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one story."""

    story: Drawn
    cards: tuple[Card, ...]
    outcome: str
    is_possible: bool
    """Whether who knows the rates before could name every cause."""
    log_score: float

    @property
    def is_proper(self) -> bool:
        """Whether it is right, or abstains where nothing more can be known."""
        excused = self.story.abstain or not self.is_possible
        return self.outcome == "right" or (self.outcome in {"abstains", "partly"} and excused)


def judge(story: Drawn) -> Result:
    """Return what is said of a story, and whether it is right."""
    counted, timing = counted_of(story), timing_of(story)
    cards = tuple(
        Card(finding, posterior)
        for finding, posterior in judge_counted(counted, timing)
        if posterior.nothing <= MOST_NOTHING
    )
    log_score = _log_score(story, counted, cards)
    return Result(story, cards, _outcome(story, cards), could_name(story), log_score)


def _outcome(story: Drawn, cards: Sequence[Card]) -> str:
    named = [card.name for card in cards if card.is_named]
    if not story.truths:
        return "wrong" if named else "right"
    wrong = [name for name in named if not any(name in truth for truth in story.truths)]
    right = [truth for truth in story.truths if any(name in truth for name in named)]
    if wrong:
        return "wrong"
    if len(right) == len(story.truths):
        return "right"
    if right:
        return "partly"
    return "abstains" if cards else "missed"


def _log_score(story: Drawn, counted: CellCounts, cards: Sequence[Card]) -> float:
    """Return the mean log probability of the true subsets, each beside the others."""
    posteriors = [card.posterior for card in cards] or [posterior_of(counted)]
    if not story.truths:
        return math.log(max(posteriors[0].nothing, 1e-6))
    best = []
    for hit in story.hit:
        cells = _indexes(counted, hit)
        answers = (answer for posterior in posteriors for answer in posterior.answers)
        best.append(max((one.probability for one in answers if one.cells == cells), default=0.0))
    return sum(math.log(max(p, 1e-6)) for p in best) / len(best)


def _indexes(counted: CellCounts, hit: frozenset[object]) -> frozenset[int]:
    places = {place_of(values) for values in hit}  # type: ignore[arg-type]
    return frozenset(i for i, cell in enumerate(counted.cells) if cell.place in places)


def could_name(story: Drawn) -> bool:
    """Whether who knows the rates before, and every other cause, could name each cause."""
    if not story.truths:
        return True
    certain = {
        values: Counts(
            counts.calls * CERTAIN, Counter({k: n * CERTAIN for k, n in counts.kinds.items()})
        )
        for values, counts in story.before.items()
    }
    counted, timing = counted_of(replace(story, before=certain)), timing_of(story)
    for index, hit in enumerate(story.hit):
        taken = []
        for place, other in enumerate(story.hit):
            if place != index:
                cells = _indexes(counted, other)
                first = next((a for a in posterior_of(counted).answers if a.cells == cells), None)
                if first:
                    taken.append(excess_of_answer(counted, first))
        posterior = posterior_of(counted, taken)
        cells = _indexes(counted, hit)
        answer = next((a for a in posterior.answers if a.cells == cells), None)
        if answer is None:
            return False
        names = names_of(answer, counted, timing)
        if answer.probability * names[0].weight < NAMED:
            return False
    return True


BINS = ((0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.85), (0.85, 0.97), (0.97, 1.01))


def report(results: Sequence[Result]) -> Iterator[str]:
    """Yield the figures, the worst family first."""
    by_family: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_family[result.story.family].append(result)
    for family, some in sorted(by_family.items(), key=lambda pair: _share_of(pair[1])):
        outcomes = Counter(result.outcome for result in some)
        told = ", ".join(f"{name} {count}" for name, count in outcomes.most_common())
        low, high = wilson_interval(sum(one.is_proper for one in some), len(some))
        yield f"{family:34} {_share_of(some):4.0%} [{low:.0%}, {high:.0%}] proper  ({told})"
    yield _clustered("right or properly abstaining", by_family, lambda one: one.is_proper)
    yield _clustered("right", by_family, lambda one: one.outcome == "right")
    yield _clustered("confidently wrong", by_family, _is_wrong)
    yield from _calibration(results)
    yield from _groups(results)


def _share_of(results: Sequence[Result]) -> float:
    return sum(result.is_proper for result in results) / len(results)


def _calibration(results: Sequence[Result]) -> Iterator[str]:
    cards = [(card, result) for result in results for card in result.cards]
    named = [pair for pair in cards if pair[0].is_named]
    yield _count("of causes named, right", sum(map(_is_right, named)), len(named))
    for low, high in BINS:
        some = [pair for pair in cards if low <= pair[0].finding.probability < high]
        if some:
            mean = sum(card.finding.probability for card, _ in some) / len(some)
            right = sum(map(_is_right, some))
            yield _count(f"  said {mean:.2f} on average, right", right, len(some))
    yield f"log score {sum(one.log_score for one in results) / len(results):.3f}"


def _groups(results: Sequence[Result]) -> Iterator[str]:
    sick = [one for one in results if one.story.truths]
    possible = [one for one in sick if one.is_possible]
    yield _count("of all with a cause, an oracle could name", len(possible), len(sick))
    yield _count("of these named", sum(one.outcome == "right" for one in possible), len(possible))
    two = [one for one in sick if len(one.story.truths) > 1]
    yield _count("two causes told apart", sum(one.outcome == "right" for one in two), len(two))
    healthy = [one for one in results if not one.story.truths]
    yield _count("healthy, with a cause named", sum(map(_is_wrong, healthy)), len(healthy))
    said = sum(bool(one.cards) for one in healthy)
    yield _count("healthy, with anything said", said, len(healthy))
    alone = [one for one in sick if one.story.models == 1]
    not_us = sum(card.says_not_us for one in alone for card in one.cards)
    yield _count('"not us" with one model', not_us, len(alone))


def _is_right(pair: tuple[Card, Result]) -> bool:
    card, result = pair
    return any(card.name in truth for truth in result.story.truths)


def _is_wrong(result: Result) -> bool:
    return result.outcome == "wrong"


def _count(words: str, count: int, total: int) -> str:
    if not total:
        return f"{words}: none"
    low, high = wilson_interval(count, total)
    return f"{words}: {count}/{total} = {count / total:.1%} [{low:.1%}, {high:.1%}]"


def _clustered(
    words: str, by_family: Mapping[str, Sequence[Result]], is_one: Callable[[Result], bool]
) -> str:
    """Return a share with its 95 % interval, clustered by family."""
    sums = [(sum(map(is_one, some)), len(some)) for some in by_family.values()]
    good, total = sum(count for count, _ in sums), sum(size for _, size in sums)
    share = good / total
    variance = sum((count - share * size) ** 2 for count, size in sums) / total**2
    half = 1.96 * math.sqrt(variance * len(sums) / max(len(sums) - 1, 1))
    low, high = max(share - half, 0.0), min(share + half, 1.0)
    return f"{words}: {good}/{total} = {share:.1%} [{low:.1%}, {high:.1%}]"
