"""Which suspect it was; first match wins.

Each must explain four fifths of the excess, about as well as the best one does, and leave
nothing else that is strong. `choose` says in which order they are asked.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from diagnostics.queries.call_counts import UNSAID
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.cells import CountCell, Dimensions, FailureBaseline, excess_of
from diagnostics.verdict.novelty import UNTIMED, Timing
from diagnostics.verdict.suspects import DIMENSIONS, Cause, EvidenceSums, Explanation, suspects_of

MOST_OF_IT = 0.8
OURS = (Cause.PROMPT, Cause.SCHEMA, Cause.RELEASE)
CLEARLY = 3.0
"""How much better than all calls together a source must explain it that is not new."""
MUCH_MORE = 6.0
"""How much better one of two must explain it to be named though the other would do."""
ANOTHER_WEIGHT = 6.0
"""What is left beside a suspect, from which on there is a second cause."""


def choose(
    contenders: Sequence[Explanation],
    by_kind: Mapping[str, float],
    ledger: EvidenceSums,
    timing: Timing,
) -> Explanation | None:
    """Choose among suspects that explain about the same; None: they cannot be told apart.

    `by_kind` is the excess of each kind of failure.
    """
    by_cause: dict[Cause, list[Explanation]] = defaultdict(list)
    for one in contenders:
        by_cause[one.suspect.cause].append(one)
    outage = _only(by_cause[Cause.PROVIDER_OUTAGE])
    if outage and ledger.hits_all(outage):
        return outage
    checked = by_cause[Cause.VALIDATOR]
    best = max((one.weight for one in checked), default=0.0)
    new = [one for cause in OURS for one in by_cause[cause] if one.suspect.is_new]
    model = _only([one for one in by_cause[Cause.MODEL] if not one.suspect.node])
    if new:
        ours = _blame_ours(new, timing)
        return _ours_or_theirs(ours, model, ledger, timing) if model else ours
    source = [
        one
        for one in by_cause[Cause.RELEASE]
        if not one.suspect.is_new
        and timing.first_call(one.suspect.touches) is None
        and one.weight >= best + CLEARLY
    ]
    checks = _validator(checked, by_kind, ledger)
    if model and checks and model.rest >= ANOTHER_WEIGHT:
        return checks
    at_node = _only([one for one in by_cause[Cause.MODEL] if one.suspect.node])
    return model or _only(source) or checks or at_node


def _ours_or_theirs(
    ours: Explanation | None, model: Explanation, ledger: EvidenceSums, timing: Timing
) -> Explanation | None:
    """Tell something new from a model whose calls it has; None: neither is likelier.

    1. The one that explains clearly more.
    2. The model, when others go on well with what is new.
    3. What is new, when it began just when the onset was.
    """
    if ours is None:
        return None
    if abs(ours.weight - model.weight) >= MUCH_MORE:
        return max(ours, model, key=lambda one: one.weight)
    if not ledger.hits_all(ours):
        return model
    begun = timing.first_call(ours.suspect.touches)
    is_just_then = begun is not None and timing.is_sharp and timing.is_near(begun)
    return ours if is_just_then else None


def _blame_ours(new: Sequence[Explanation], timing: Timing) -> Explanation | None:
    """Of several new things, blame the one that was told, or what a release brought."""
    causes = {one.suspect.cause for one in new}
    told = {cause for cause in causes if cause.value in timing.told_kinds()}
    if len(causes) > 1 and len(told) == 1:
        causes = told
    elif len(causes) > 1:
        causes -= {Cause.RELEASE}
    if len(causes) != 1:
        return None
    mine = [one for one in new if one.suspect.cause in causes]
    return max(mine, key=lambda one: one.weight)


def _validator(
    found: Sequence[Explanation], by_kind: Mapping[str, float], ledger: EvidenceSums
) -> Explanation | None:
    """Blame the checks of all nodes, or of the one that is hit."""
    if not _is_one_kind(by_kind):
        return None
    hit = [one for one in found if one.models >= 2 and ledger.hits_all(one)]
    return max(hit, key=lambda one: bool(one.suspect.value), default=None)


def _is_one_kind(by_kind: Mapping[str, float]) -> bool:
    """Whether one kind rose; runs that were told without their calls may hide any."""
    risen = {kind: more for kind, more in by_kind.items() if more > 0}
    told = [more for kind, more in risen.items() if kind != UNSAID]
    return any(
        max(rose, default=0.0) >= MOST_OF_IT * sum(rose) for rose in (list(risen.values()), told)
    )


def _only(found: Sequence[Explanation]) -> Explanation | None:
    return found[0] if len(found) == 1 else None


LEAST_CALLS = 20
LEAST_EXCESS = 3.5
LEAST_WEIGHT = 6.0
UNSURE_WEIGHT = 2.0
UNSURE_EXCESS = 2.0
"""From here on something may be wrong, and there is too little to tell."""
TOLERANCE = 4.0
"""Weights closer than this (and a twentieth of the best) cannot be told apart."""
LEAST_OF_BEST = 0.6
"""Of the weight of whatever explains most, what one that explains it all must have."""
LEAST_PART = 0.1
"""Of the kind that rose most, what another must have to count as risen."""
ANOTHER_SHARE = 0.06
"""The part that is left beside a suspect, from which on there is a second cause."""
THEIRS = (Cause.PROVIDER_OUTAGE, Cause.MODEL)


@dataclass(frozen=True, slots=True)
class ExcessShare:
    """How much of the excess one value of a dimension has, beside its share of calls."""

    dimension: str
    value: str
    share: float
    traffic_share: float

    @property
    def lift(self) -> float | None:
        """How many times its due it has; None where it had no calls."""
        return self.share / self.traffic_share if self.traffic_share else None


@dataclass(frozen=True, slots=True)
class Finding:
    """What an excess is put down to; `cause` is None when there is no excess."""

    cause: Cause | None
    value: str = ""
    excess: float = 0.0
    top_kind: str = ""
    risen: tuple[str, ...] = ()
    """The kinds that make up the excess, the largest first."""
    prompts: int = 0
    models: int = 0
    shares: tuple[ExcessShare, ...] = ()
    touches: Callable[[Dimensions], bool] = field(default=lambda _: True)
    parts: tuple[str, ...] = ()
    """What it may be made of, where no one thing explains it."""
    is_new: bool = False
    """Whether the cause is a version that began with it."""


def find_cause(
    cells: Sequence[CountCell], before: Sequence[CountCell], timing: Timing = UNTIMED
) -> Finding:
    """Say what the failures of a window come from, given a healthy stretch before it."""
    if sum(cell.attempts for cell in cells) < LEAST_CALLS:
        return Finding(Cause.NOT_ENOUGH_DATA)
    usual = FailureBaseline.of(before)
    ledger = EvidenceSums(cells, usual)
    found = [ledger.explain(one) for one in suspects_of(cells, before, timing)]
    by_kind = _by_kind(cells, usual)
    excess = sum(by_kind.values())
    # What fails less elsewhere must not hide what fails more here.
    best = _heaviest(one for one in found if one.excess >= LEAST_EXCESS)
    if best < LEAST_WEIGHT:
        unsure = _heaviest(one for one in found if one.excess >= UNSURE_EXCESS)
        is_unsure = unsure >= UNSURE_WEIGHT
        return Finding(Cause.NOT_ENOUGH_DATA if is_unsure else None, excess=excess)
    contenders = _contenders(found, best)
    chosen = choose(contenders, by_kind, ledger, timing)
    parts = [chosen] if chosen else _parts(found)
    touches = _any_of(parts)
    hit = [cell for cell in cells if touches(cell.place) and cell.failed]
    return Finding(
        chosen.suspect.cause if chosen else Cause.MIXED,
        chosen.suspect.value if chosen else "",
        chosen.excess if chosen else excess,
        *_risen(by_kind),
        len({cell.place.prompt_version for cell in hit}),
        len({(cell.place.provider, cell.place.model) for cell in hit}),
        shares_of(cells, usual),
        touches,
        () if chosen else tuple(dict.fromkeys(one.suspect.value for one in parts)),
        bool(chosen and chosen.suspect.is_new),
    )


def shares_of(cells: Sequence[CountCell], usual: FailureBaseline) -> tuple[ExcessShare, ...]:
    """Divide excess and calls by every dimension, the largest part of the excess first."""
    calls = sum(cell.attempts for cell in cells)
    more = [(cell, sum(excess_of(cell, usual).values())) for cell in cells]
    excess = sum(one for _, one in more)
    found = []
    for dimension, read in _READ.items():
        parts: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for cell, one in more:
            part = parts[read(cell.place) or "unknown"]
            part[0] += one
            part[1] += cell.attempts
        found += [
            ExcessShare(dimension, value, part / excess, seen / calls)
            for value, (part, seen) in parts.items()
            if excess > 0
        ]
    return tuple(sorted(found, key=lambda share: -share.share))


_READ: Mapping[str, Callable[[Dimensions], str | None]] = {
    "provider": lambda place: place.provider,
    "model": lambda place: place.model,
    "prompt_version": lambda place: place.prompt_version,
    "schema": DIMENSIONS[Cause.SCHEMA],
    "release": DIMENSIONS[Cause.RELEASE],
    "source": lambda place: place.source,
}


def _by_kind(cells: Sequence[CountCell], usual: FailureBaseline) -> dict[str, float]:
    found = dict.fromkeys(FAILURE_KINDS, 0.0)
    for kind, more in chain.from_iterable(excess_of(cell, usual).items() for cell in cells):
        found[kind] += more
    return found


def _risen(by_kind: Mapping[str, float]) -> tuple[str, tuple[str, ...]]:
    """Return the kind that rose most, and all that rose a tenth as much."""
    kinds = sorted(by_kind, key=by_kind.__getitem__, reverse=True)
    least = by_kind[kinds[0]] * LEAST_PART
    return kinds[0], tuple(kind for kind in kinds if by_kind[kind] >= least)


def _heaviest(found: Iterable[Explanation]) -> float:
    return max((one.weight for one in found), default=0.0)


def _contenders(found: Sequence[Explanation], best: float) -> list[Explanation]:
    """Keep what explains it and leaves nothing else, about as well as the best of these.

    None, where something explains much more of it that is not all of it.
    """
    whole = [
        one
        for one in found
        if one.excess >= LEAST_EXCESS
        and one.share >= MOST_OF_IT
        and (one.rest < ANOTHER_WEIGHT or one.share >= 1 - ANOTHER_SHARE)
    ]
    heaviest = _heaviest(whole)
    if heaviest < LEAST_OF_BEST * best:
        return []
    near = heaviest - TOLERANCE - heaviest / 20
    return [one for one in whole if one.weight >= near]


def _parts(found: Sequence[Explanation]) -> list[Explanation]:
    """Return the two strongest suspects, where no one alone explains enough."""
    named = [
        one
        for one in found
        if one.weight >= LEAST_WEIGHT
        and one.excess >= LEAST_EXCESS
        and one.suspect.value
        and (one.suspect.is_new or one.suspect.cause in THEIRS)
    ]
    strongest: dict[str, Explanation] = {}
    for one in sorted(named, key=lambda one: -one.weight):
        strongest.setdefault(one.suspect.value, one)
    return list(strongest.values())[:2]


def _any_of(parts: Sequence[Explanation]) -> Callable[[Dimensions], bool]:
    """Whether a place is touched by one of these; where there are none, all are."""
    if not parts:
        return lambda _: True
    return lambda place: any(one.suspect.touches(place) for one in parts)
