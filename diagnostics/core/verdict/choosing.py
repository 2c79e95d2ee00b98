"""Which of the suspects that fit is to blame; first match wins.

1. Calls without an answer, at one provider and all of its models: an outage there.
2. Something of ours that is new (a prompt, a schema, a release), unless one model explains
   as much without it.
3. One model.
4. One source.
5. All models, one kind of failure: our validator, or the tools it knows.
6. Otherwise none: mixed is said rather than guessed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from diagnostics.core.verdict.cells import Cell, Usual
from diagnostics.core.verdict.novelty import Timing
from diagnostics.core.verdict.suspects import Cause, Explained

MOST_OF_IT = 0.8
OURS = (Cause.PROMPT, Cause.SCHEMA, Cause.RELEASE)
CALLED_OFTEN = 20
CLEARLY = 3.0
"""How much better than all calls together a source must explain it that is not new."""
PART_OF_WORST = 0.25
"""A model that is hit less than this part of the worst one is not hit."""


def choose(
    contenders: Sequence[Explained],
    by_kind: Mapping[str, float],
    cells: Sequence[Cell],
    usual: Usual,
    timing: Timing,
) -> Explained | None:
    """Choose among suspects that explain about the same; None: they cannot be told apart.

    `by_kind` is the excess of each kind of failure.
    """
    by_cause: dict[Cause, list[Explained]] = defaultdict(list)
    for one in contenders:
        by_cause[one.suspect.cause].append(one)
    outage = _only(by_cause[Cause.PROVIDER_OUTAGE])
    if outage and _hits_all(outage, cells, usual):
        return outage
    checked = by_cause[Cause.VALIDATOR]
    best = max((one.weight for one in checked), default=0.0)
    new = [one for cause in OURS for one in by_cause[cause] if one.suspect.is_new]
    model = _only(by_cause[Cause.MODEL])
    if new:
        return None if model else _blame_ours(new, timing)
    source = [
        one
        for one in by_cause[Cause.RELEASE]
        if not one.suspect.is_new
        and not timing.has_begun(one.suspect.touches)
        and one.weight >= best + CLEARLY
    ]
    checks = _validator(checked, by_kind, cells, usual)
    return model or _only(source) or checks


def _blame_ours(new: Sequence[Explained], timing: Timing) -> Explained | None:
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
    found: Sequence[Explained],
    by_kind: Mapping[str, float],
    cells: Sequence[Cell],
    usual: Usual,
) -> Explained | None:
    """Blame the checks of all nodes, or of the one that is hit."""
    total = sum(more for more in by_kind.values() if more > 0)
    if max(by_kind.values()) < MOST_OF_IT * total:
        return None
    hit = [one for one in found if one.models >= 2 and _hits_all(one, cells, usual)]
    return max(hit, key=lambda one: bool(one.suspect.value), default=None)


def _only(found: Sequence[Explained]) -> Explained | None:
    return found[0] if len(found) == 1 else None


def _hits_all(one: Explained, cells: Sequence[Cell], usual: Usual) -> bool:
    """Whether no model that is called often enough goes on well where a suspect touches."""
    calls: dict[tuple[str | None, str | None], list[float]]
    calls = defaultdict(lambda: [0.0, 0.0])
    kinds = one.suspect.kinds
    for cell in cells:
        if one.suspect.touches(cell.place):
            known = calls[cell.place.provider, cell.place.model]
            known[0] += cell.attempts
            known[1] += sum(
                cell.failures.get(kind, 0)
                - cell.attempts * usual.share(cell.place, kind)
                for kind in kinds
            )
    often = [more / seen for seen, more in calls.values() if seen >= CALLED_OFTEN]
    worst = max(often, default=0.0)
    return all(rate >= PART_OF_WORST * worst for rate in often)
