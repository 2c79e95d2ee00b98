"""Which suspect it was; first match wins.

Each must explain four fifths of the excess, about as well as the best one does, and leave
nothing else that is strong. `choosing` says in which order they are asked.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from diagnostics.core.rollups import FAILURE_KINDS
from diagnostics.core.verdict.cells import Cell, Place, Usual, excess_of
from diagnostics.core.verdict.choosing import ANOTHER_WEIGHT, MOST_OF_IT, choose
from diagnostics.core.verdict.novelty import UNTIMED, Timing
from diagnostics.core.verdict.suspects import (
    DIMENSIONS,
    Cause,
    Explained,
    Ledger,
    suspects_of,
)

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
class Share:
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
    shares: tuple[Share, ...] = ()
    touches: Callable[[Place], bool] = field(default=lambda _: True)
    parts: tuple[str, ...] = ()
    """What it may be made of, where no one thing explains it."""
    is_new: bool = False
    """Whether the cause is a version that began with it."""


def find_cause(cells: Sequence[Cell], before: Sequence[Cell], timing: Timing = UNTIMED) -> Finding:
    """Say what the failures of a window come from, given a healthy stretch before it."""
    if sum(cell.attempts for cell in cells) < LEAST_CALLS:
        return Finding(Cause.NOT_ENOUGH_DATA)
    usual = Usual.of(before)
    ledger = Ledger(cells, usual)
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
    chosen = choose(contenders, by_kind, cells, usual, timing)
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


def shares_of(cells: Sequence[Cell], usual: Usual) -> tuple[Share, ...]:
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
            Share(dimension, value, part / excess, seen / calls)
            for value, (part, seen) in parts.items()
            if excess > 0
        ]
    return tuple(sorted(found, key=lambda share: -share.share))


_READ: Mapping[str, Callable[[Place], str | None]] = {
    "provider": lambda place: place.provider,
    "model": lambda place: place.model,
    "prompt_version": lambda place: place.prompt_version,
    "schema": DIMENSIONS[Cause.SCHEMA],
    "release": DIMENSIONS[Cause.RELEASE],
    "source": lambda place: place.source,
}


def _by_kind(cells: Sequence[Cell], usual: Usual) -> dict[str, float]:
    found = dict.fromkeys(FAILURE_KINDS, 0.0)
    for kind, more in chain.from_iterable(excess_of(cell, usual).items() for cell in cells):
        found[kind] += more
    return found


def _risen(by_kind: Mapping[str, float]) -> tuple[str, tuple[str, ...]]:
    """Give the kind that rose most, and all that rose a tenth as much."""
    kinds = sorted(by_kind, key=by_kind.__getitem__, reverse=True)
    least = by_kind[kinds[0]] * LEAST_PART
    return kinds[0], tuple(kind for kind in kinds if by_kind[kind] >= least)


def _heaviest(found: Iterable[Explained]) -> float:
    return max((one.weight for one in found), default=0.0)


def _contenders(found: Sequence[Explained], best: float) -> list[Explained]:
    """Keep what explains it and leaves nothing else, about as well as the best of these.

    None, where something explains much more of it that is not all of it.
    """
    whole = [
        one
        for one in found
        if one.excess >= LEAST_EXCESS and one.share >= MOST_OF_IT and not _leaves_another(one)
    ]
    heaviest = _heaviest(whole)
    if heaviest < LEAST_OF_BEST * best:
        return []
    near = heaviest - TOLERANCE - heaviest / 20
    return [one for one in whole if one.weight >= near]


def _leaves_another(one: Explained) -> bool:
    return one.rest >= ANOTHER_WEIGHT and one.share < 1 - ANOTHER_SHARE


def _parts(found: Sequence[Explained]) -> list[Explained]:
    """Give the two strongest suspects, where no one alone explains enough."""
    named = [
        one
        for one in found
        if one.weight >= LEAST_WEIGHT
        and one.excess >= LEAST_EXCESS
        and one.suspect.value
        and (one.suspect.is_new or one.suspect.cause in THEIRS)
    ]
    strongest: dict[str, Explained] = {}
    for one in sorted(named, key=lambda one: -one.weight):
        strongest.setdefault(one.suspect.value, one)
    return list(strongest.values())[:2]


def _any_of(parts: Sequence[Explained]) -> Callable[[Place], bool]:
    """Ask whether a place is touched by one of these; where there are none, all are."""
    if not parts:
        return lambda _: True
    return lambda place: any(one.suspect.touches(place) for one in parts)
