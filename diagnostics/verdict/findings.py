"""The causes of what got worse since an onset, from counts alone.

A cause is named from a probability on that was chosen on drawn families of incidents; below it
the two likeliest are, if they have that probability together.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from diagnostics.analysis.series import SeriesKey
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.cause import LEAST_CALLS, VERSIONS, Cause, ExcessShare, Finding
from diagnostics.verdict.cells import CountCell
from diagnostics.verdict.counted import CellCounts, excess_in, risen_kinds, wellness
from diagnostics.verdict.explainer import Explanation, Posterior, excess_of_answer, explain
from diagnostics.verdict.hypotheses import READ, UNTIMED, Timing
from diagnostics.verdict.knowledge import THEIRS, CauseName, names_of, place_of
from diagnostics.verdict.rates import CellBaseline

NAMED = 0.85
"""The least probability of a named cause."""
MOST_NOTHING, SURELY_NOTHING = 1 - NAMED, 0.9
"""The highest probability that nothing got worse where something is said to be worse, and the
lowest where all is said to be well."""
WELL = 3.0
"""How much likelier (log) calls must be at their expected rate than hit, to be a comparison."""
MOST_OURS = 0.05
"""The highest probability of all causes of ours beside one that is not us."""
LEAST_PART = 0.1
"""The share of the largest rise that another kind must have to count as risen."""
SHARED = ("provider", "model", "prompt_version", "schema", "release", "source")
"""The dimensions whose shares of the excess are told."""


Candidate = tuple[float, Explanation, CauseName]
"""The probability of an answer under one of its names."""


def find_causes(
    cells: Sequence[CountCell],
    before: Sequence[CountCell],
    timing: Timing = UNTIMED,
    noise: float = 0.0,
    fired: Collection[SeriesKey] | None = None,
) -> list[Finding]:
    """Return the causes of the failures in a stretch, given a healthy one before it.

    A single finding without a cause says that nothing got worse, or that it cannot be told.
    """
    if sum(cell.attempts for cell in cells) < LEAST_CALLS:
        return [Finding(Cause.NOT_ENOUGH_DATA)]
    counted = CellCounts.of(cells, before, timing, noise, fired)
    found = judge_counted(counted, timing)
    nothing = found[0][1].nothing if found else 1.0
    if nothing > MOST_NOTHING:
        return [Finding(None if nothing >= SURELY_NOTHING else Cause.NOT_ENOUGH_DATA)]
    named = [finding for finding, _ in found if finding.cause is not Cause.MIXED]
    return named or [found[0][0]]


def judge_counted(counted: CellCounts, timing: Timing) -> list[tuple[Finding, Posterior]]:
    """Return each cause as it is named, or as mixed, with the posterior beside the others."""
    answers = explain(counted)
    findings = []
    for answer, posterior in answers:
        others = [other for other, _ in answers if other is not answer]
        finding = _finding(answer, posterior, others, counted, timing)
        # Its calls may fail in the way of another cause, too.
        theirs = {kind for other in others for kind in other.kinds} - {*answer.kinds}
        risen = tuple(kind for kind in finding.risen if kind not in theirs) or answer.kinds
        findings.append((replace(finding, risen=risen, top_kind=risen[0]), posterior))
    return findings


def _finding(
    answer: Explanation,
    posterior: Posterior,
    beside: Iterable[Explanation],
    counted: CellCounts,
    timing: Timing,
) -> Finding:
    names = names_of(answer, counted, timing)
    every = (
        (answer.probability * name.weight, answer, name)
        for answer in posterior.answers
        for name in names_of(answer, counted, timing)
    )
    candidates = sorted(every, key=lambda candidate: -candidate[0])
    # A model at one of its nodes and the model have the same name: the likelier one is shown.
    same = [candidate for candidate in candidates if _is_same(candidate[2], names[0])]
    if _probability(same) < NAMED:
        same = _common_version(candidates, beside)
    probability = _probability(same)
    if probability < NAMED:
        return _mixed(candidates, posterior, counted)
    _, answer, name = same[0]
    ours = sum(p for p, _, name in candidates if name.cause not in THEIRS)
    others = [index for index in range(len(counted.cells)) if index not in answer.cells]
    versions = {counted.cells[index].place.versions for index in answer.cells}
    siblings = [index for index in others if counted.cells[index].place.versions in versions]
    return replace(
        _described(answer.cells, counted),
        cause=name.cause,
        value=name.value,
        place=place_of(name.subset),
        touches=name.subset.touches,
        is_new=name.subset.is_new,
        is_compared=_is_well(others, answer, counted),
        is_theirs=ours <= MOST_OURS
        # From one environment it may be our way to the provider.
        and not (len(name.subset.parts) > 1 and "environment" in name.subset.dimensions)
        and _is_well(siblings, answer, counted),
        probability=probability,
        has_new_version=timing.first_call(name.subset.touches) is not None,
    )


def _is_same(name: CauseName, other: CauseName) -> bool:
    """Whether two names say the same; that a node is hit says where the validator fails."""
    return name.key == other.key or {name.cause, other.cause} == {Cause.VALIDATOR}


def _probability(candidates: Iterable[Candidate]) -> float:
    return sum(probability for probability, _, _ in candidates)


def _common_version(
    candidates: Sequence[Candidate], beside: Iterable[Explanation]
) -> list[Candidate]:
    """Return the answers that have the likeliest new version in common, itself first.

    Whether it fails at one of its models only or at all of them, it is the version. None if a
    cause `beside` has that version already.
    """
    known = {part for other in beside for part in other.subsets[0].parts}
    for first in candidates:
        parts = {*first[2].subset.parts}
        if first[2].subset.is_new and first[2].cause in VERSIONS and known.isdisjoint(parts):
            within = (other for other in candidates if parts <= {*other[2].subset.parts})
            return [first, *(other for other in within if other is not first)]
    return []


def _mixed(candidates: Sequence[Candidate], posterior: Posterior, counted: CellCounts) -> Finding:
    """Return what cannot be told apart: the two likeliest causes, if it is one of these."""
    # A version that was there before is no alternative: nothing of it changed.
    named = [row for row in candidates if row[2].subset.is_new or row[2].cause not in VERSIONS]
    first = (named or candidates)[0]
    second = next((name for name in named if name[2].key != first[2].key), first)
    is_either = first[0] < NAMED <= first[0] + second[0] and first is not second
    likely: list[Explanation] = []
    for answer in posterior.answers:
        likely.append(answer)
        if sum(candidate.probability for candidate in likely) >= NAMED:
            break
    cells = frozenset[int]().union(*(answer.cells for answer in likely))
    subsets = tuple(answer.subsets[0] for answer in likely)
    return replace(
        _described(cells, counted),
        cause=Cause.MIXED,
        touches=lambda place: any(subset.touches(place) for subset in subsets),
        alternatives=(first[2].key, second[2].key) if is_either else (),
        came_together=is_either and first[1] is second[1],
        is_compared=any(len(candidate.cells) < len(counted.cells) for candidate in likely),
        is_theirs=False,
        probability=candidates[0][0],
    )


def _is_well(cells: Iterable[int], answer: Explanation, counted: CellCounts) -> bool:
    """Whether some calls, or those of some model among them, are well by comparison."""
    by_model: dict[object, list[CountCell]] = defaultdict(list)
    for index in cells:
        cell = counted.cells[index]
        by_model[cell.place[:2]].append(cell)
    parts = [[cell for part in by_model.values() for cell in part], *by_model.values()]
    share = excess_of_answer(counted, answer).share
    return any(wellness(counted, answer.kinds, share, part) >= WELL for part in parts if part)


def _described(cells: Collection[int], counted: CellCounts) -> Finding:
    """Return what is counted in some cells: the kinds, prompts and models that rose."""
    by_model, by_prompt = defaultdict[object, float](float), defaultdict[str | None, float](float)
    for index in cells:
        place, more = counted.cells[index].place, excess_in(counted, (index,), FAILURE_KINDS)
        by_model[place[:2]] += more
        by_prompt[place.prompt_version] += more
    risen = risen_kinds(cells, counted, LEAST_PART)
    others = [index for index in range(len(counted.cells)) if index not in cells]
    excess, rest = (max(excess_in(counted, some, FAILURE_KINDS), 0.0) for some in (cells, others))
    called, calls = (
        sum(counted.cells[index].attempts for index in some) for some in (cells, [*cells, *others])
    )
    return Finding(
        None,
        excess=sum(by_model.values()),
        part=(excess / (excess + rest), called / calls) if excess else None,
        top_kind=risen[0] if risen else "",
        risen=risen,
        prompts=sum(more >= 1 for prompt, more in by_prompt.items() if prompt),
        models=sum(more >= 1 for more in by_model.values()),
        called_models=len(by_model),
        shares=shares_of(counted),
    )


def shares_of(counted: CellCounts) -> tuple[ExcessShare, ...]:
    """Return the shares of excess and calls by every dimension, the largest first.

    A value that fails less than expected has no share.
    """
    calls = sum(cell.attempts for cell in counted.cells)
    excesses = [excess_in(counted, (index,), FAILURE_KINDS) for index in range(len(counted.cells))]
    shares: list[ExcessShare] = []
    for dimension in SHARED if sum(excesses) > 0 else ():
        read = READ[dimension] if dimension != "model" else lambda place: place.model
        parts: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for cell, more in zip(counted.cells, excesses, strict=True):
            part = parts[read(cell.place) or "unknown"]
            part[0] += more
            part[1] += cell.attempts
        risen = sum(max(more, 0.0) for more, _ in parts.values())
        shares += [
            ExcessShare(dimension, value, max(more, 0.0) / risen, called / calls)
            for value, (more, called) in parts.items()
        ]
    return tuple(sorted(shares, key=lambda share: -share.share))


def is_shifted(cells: Sequence[CountCell], before: Sequence[CountCell]) -> bool:
    """Whether the rate rose only because calls moved to where more always failed (Kitagawa)."""
    baseline = CellBaseline.of(before)
    past, calls = (sum(cell.attempts for cell in part) for part in (before, cells))
    if not past or not calls:
        return False
    was = sum(cell.failed for cell in before) / past
    now = sum(cell.failed for cell in cells) / calls
    mixed = sum(cell.attempts * baseline.rate(cell.place, FAILURE_KINDS).mean for cell in cells)
    return now - was > 0 and mixed / calls - was >= (now - was) / 2
