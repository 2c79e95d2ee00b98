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
from diagnostics.core.verdict.counted import UNSAID
from diagnostics.core.verdict.novelty import Timing
from diagnostics.core.verdict.suspects import Cause, Explained

MOST_OF_IT = 0.8
OURS = (Cause.PROMPT, Cause.SCHEMA, Cause.RELEASE)
CALLED_OFTEN = 20
CLEARLY = 3.0
"""How much better than all calls together a source must explain it that is not new."""
MUCH_MORE = 6.0
"""How much better one of two must explain it to be named though the other would do."""
ANOTHER_WEIGHT = 6.0
"""What is left beside a suspect, from which on there is a second cause."""
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
    model = _only([one for one in by_cause[Cause.MODEL] if not one.suspect.node])
    if new:
        ours = _blame_ours(new, timing)
        return _ours_or_theirs(ours, model, cells, usual, timing) if model else ours
    source = [
        one
        for one in by_cause[Cause.RELEASE]
        if not one.suspect.is_new
        and not timing.has_begun(one.suspect.touches)
        and one.weight >= best + CLEARLY
    ]
    checks = _validator(checked, by_kind, cells, usual)
    if model and checks and model.rest >= ANOTHER_WEIGHT:
        return checks
    at_node = _only([one for one in by_cause[Cause.MODEL] if one.suspect.node])
    return model or _only(source) or checks or at_node


def _ours_or_theirs(
    ours: Explained | None,
    model: Explained,
    cells: Sequence[Cell],
    usual: Usual,
    timing: Timing,
) -> Explained | None:
    """Tell something new from a model whose calls it has; None: neither is likelier.

    1. The one that explains clearly more.
    2. The model, when others go on well with what is new.
    3. What is new, when it began just when the onset was.
    """
    if ours is None:
        return None
    if abs(ours.weight - model.weight) >= MUCH_MORE:
        return max(ours, model, key=lambda one: one.weight)
    if not _hits_all(ours, cells, usual):
        return model
    begun = timing.first_call(ours.suspect.touches)
    is_just_then = begun is not None and timing.is_sharp and timing.is_near(begun)
    return ours if is_just_then else None


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
    if not _is_one_kind(by_kind):
        return None
    hit = [one for one in found if one.models >= 2 and _hits_all(one, cells, usual)]
    return max(hit, key=lambda one: bool(one.suspect.value), default=None)


def _is_one_kind(by_kind: Mapping[str, float]) -> bool:
    """Whether one kind rose; runs that were told without their calls may hide any."""
    risen = {kind: more for kind, more in by_kind.items() if more > 0}
    told = [more for kind, more in risen.items() if kind != UNSAID]
    return any(
        max(rose, default=0.0) >= MOST_OF_IT * sum(rose) for rose in (list(risen.values()), told)
    )


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
                cell.failures.get(kind, 0) - cell.attempts * usual.share(cell.place, kind)
                for kind in kinds
            )
    often = [more / seen for seen, more in calls.values() if seen >= CALLED_OFTEN]
    worst = max(often, default=0.0)
    return all(rate >= PART_OF_WORST * worst for rate in often)
