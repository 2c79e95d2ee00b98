"""Which suspect it was; first match wins.

Each must explain four fifths of the excess, and about as well as the best one does.

1. Calls without an answer, at one provider: an outage there.
2. Something of ours that is new (a prompt, a schema, a release), when it explains more than
   the model does or was seen at two models.
3. One model, unless something new of ours fits as well.
4. One source.
5. All models, one kind of failure: our validator, or the tools it knows.
6. Otherwise mixed: said rather than guessed.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from diagnostics.core.rollups import FAILURE_KINDS
from diagnostics.core.verdict.cells import TRANSPORT, Cell, Place, Usual, excess_of
from diagnostics.core.verdict.suspects import (
    DIMENSIONS,
    Cause,
    Explained,
    explain,
    suspects_of,
)

LEAST_CALLS = 20
LEAST_EXCESS = 4.0
LEAST_WEIGHT = 6.0
UNSURE_WEIGHT = 4.0
"""From here on something may be wrong, and there is too little to tell."""
MOST_OF_IT = 0.8
TOLERANCE = 4.0
"""Weights closer than this (and a twentieth of the best) cannot be told apart."""
OURS = (Cause.PROMPT, Cause.SCHEMA, Cause.RELEASE)


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
    prompts: int = 0
    models: int = 0
    shares: tuple[Share, ...] = ()
    touches: Callable[[Place], bool] = field(default=lambda _: True)


def find_cause(cells: Sequence[Cell], before: Sequence[Cell]) -> Finding:
    """Say what the failures of a window come from, given a healthy stretch before it."""
    if sum(cell.attempts for cell in cells) < LEAST_CALLS:
        return Finding(Cause.NOT_ENOUGH_DATA)
    usual = Usual.of(before)
    by_kind = _by_kind(cells, usual)
    found = [explain(one, cells, usual) for one in suspects_of(cells, before)]
    best = max(found, key=lambda one: one.weight)
    excess = sum(by_kind.values())
    if best.weight < LEAST_WEIGHT or best.excess < LEAST_EXCESS:
        unsure = best.weight >= UNSURE_WEIGHT and best.excess >= LEAST_EXCESS
        return Finding(Cause.NOT_ENOUGH_DATA if unsure else None, excess=excess)
    chosen = _choose(_contenders(found, best.weight), by_kind, cells)
    touches = chosen.suspect.touches if chosen else _anywhere
    hit = [cell for cell in cells if touches(cell.place) and cell.failed]
    return Finding(
        chosen.suspect.cause if chosen else Cause.MIXED,
        chosen.suspect.value if chosen else "",
        chosen.excess if chosen else excess,
        max(by_kind, key=by_kind.__getitem__),
        len({cell.place.prompt_version for cell in hit}),
        len({(cell.place.provider, cell.place.model) for cell in hit}),
        shares_of(cells, usual),
        touches,
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


def _anywhere(_: Place) -> bool:
    return True


def _by_kind(cells: Sequence[Cell], usual: Usual) -> dict[str, float]:
    found = dict.fromkeys(FAILURE_KINDS, 0.0)
    for kind, more in chain.from_iterable(
        excess_of(cell, usual).items() for cell in cells
    ):
        found[kind] += more
    return found


def _contenders(found: Sequence[Explained], best: float) -> list[Explained]:
    near = best - TOLERANCE - best / 20
    return [one for one in found if one.weight >= near and _share_of(one) >= MOST_OF_IT]


def _share_of(one: Explained) -> float:
    return one.excess / (one.excess + one.elsewhere) if one.excess > 0 else 0


def _choose(
    contenders: Sequence[Explained],
    by_kind: Mapping[str, float],
    cells: Sequence[Cell],
) -> Explained | None:
    by_cause: dict[Cause, list[Explained]] = defaultdict(list)
    for one in contenders:
        by_cause[one.suspect.cause].append(one)
    outage = _only(by_cause[Cause.PROVIDER_OUTAGE])
    if outage and _hits_all_its_models(outage, cells):
        return outage
    new = [one for cause in OURS for one in by_cause[cause] if one.suspect.is_new]
    model = _only(by_cause[Cause.MODEL])
    if new:
        return _blame_ours(new, model)
    return (
        model
        or _only(by_cause[Cause.RELEASE])
        or _validator(by_cause[Cause.VALIDATOR], by_kind)
    )


def _blame_ours(new: Sequence[Explained], model: Explained | None) -> Explained | None:
    """Blame what is new of ours, unless two such things, or a model, fit as well."""
    if model is not None:
        return None
    return new[0] if len({one.suspect.cause for one in new}) == 1 else None


def _validator(
    found: Sequence[Explained], by_kind: Mapping[str, float]
) -> Explained | None:
    total = sum(more for more in by_kind.values() if more > 0)
    one = _only(found)
    if one and one.models >= 2 and max(by_kind.values()) >= MOST_OF_IT * total:
        return one
    return None


def _only(found: Sequence[Explained]) -> Explained | None:
    return found[0] if len(found) == 1 else None


def _hits_all_its_models(outage: Explained, cells: Sequence[Cell]) -> bool:
    """Whether no model of the provider that is called often enough goes on well."""
    calls: dict[str | None, list[int]] = defaultdict(lambda: [0, 0])
    for cell in cells:
        if outage.suspect.touches(cell.place):
            known = calls[cell.place.model]
            known[0] += cell.attempts
            known[1] += sum(cell.failures.get(kind, 0) for kind in TRANSPORT)
    worst = max(failed / seen for seen, failed in calls.values() if seen)
    return all(
        failed / seen >= worst / 4 for seen, failed in calls.values() if seen >= 20
    )
