"""Which suspect it was.

A suspect is named when it explains four fifths of the excess about as well as the best one
does, when all of its calls that are often made are hit, and when calls that it does not
touch go on well: without such calls there is nothing to compare with.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from diagnostics.queries.call_counts import UNSAID
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.verdict.cells import LIMITED, CountCell, Dimensions, FailureBaseline, excess_of
from diagnostics.verdict.novelty import UNTIMED, Timing
from diagnostics.verdict.suspects import (
    DIMENSIONS,
    PART,
    PART_OF_OUTAGE,
    Cause,
    EvidenceSums,
    Explanation,
    Suspect,
    pairs_of,
    source_of,
    suspects_of,
)

MOST_OF_IT = 0.8
OURS = (Cause.PROMPT, Cause.SCHEMA, Cause.RELEASE)
WELL = 2.5
"""How much likelier (log) calls must go as usual than be hit, to be compared with."""
HIT = 0.0
"""A part that is less well than this is likelier hit than not."""
ANOTHER_WEIGHT = 6.0
"""What is left beside a suspect, from which on there is a second cause."""
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
MOST_TRIED = 14
"""Suspects of which each two are tried as two causes at once."""


def _model_of(place: Dimensions) -> object:
    return place.provider, place.model


def _served_of(place: Dimensions) -> object:
    return place.served


PARTS: Mapping[Cause, Sequence[Callable[[Dimensions], object]]] = {
    Cause.PROVIDER_OUTAGE: (_model_of,),
    Cause.MODEL: (source_of, lambda place: place.prompt_version, _served_of),
    Cause.PROMPT: (_model_of,),
    Cause.SCHEMA: (_model_of,),
    Cause.RELEASE: (_model_of,),
    Cause.SOURCE: (_model_of, lambda place: place.prompt_version),
    Cause.VALIDATOR: (_model_of, source_of, lambda place: place.prompt_version),
}
"""By what the calls of a suspect are divided: none of the parts may go well."""
OTHERS: Mapping[Cause, Callable[[Dimensions], object]] = {
    Cause.PROVIDER_OUTAGE: lambda place: place.provider,
    Cause.MODEL: _model_of,
    Cause.SOURCE: source_of,
}
"""By what the calls are divided that a suspect does not touch: one at least must go well."""


def _except(
    touches: Callable[[Dimensions], bool], part: Callable[[Dimensions], bool]
) -> Callable[[Dimensions], bool]:
    return lambda place: touches(place) and not part(place)


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What is known of the calls since an onset, and how suspects are held against it."""

    ledger: EvidenceSums
    timing: Timing
    by_kind: Mapping[str, float]
    """The excess of each kind of failure."""
    served_before: frozenset[object] = frozenset()
    """Models of which it was told before what answered in their place."""

    def is_whole(self, one: Explanation) -> bool:
        """Whether no part of the calls of a suspect goes on well."""
        part = PART_OF_OUTAGE if one.suspect.cause is Cause.PROVIDER_OUTAGE else PART
        touches = one.suspect.touches
        return not any(
            self.ledger.wellness(one, mine, part) > WELL
            for read in PARTS.get(one.suspect.cause, ())
            for mine in self.ledger.parts(read, touches)
        )

    def is_compared(self, one: Explanation) -> bool:
        """Whether calls that a suspect does not touch go on well, which could be hit as well."""
        read, touches = OTHERS[one.suspect.cause], one.suspect.touches
        return self._goes_well(one, lambda place: not touches(place), read)

    def is_outage_compared(self, one: Explanation) -> bool:
        """Whether other providers answer, or this one says itself that it refuses."""
        return self.is_refused(one) or self.is_compared(one)

    def is_refused(self, one: Explanation) -> bool:
        """Whether most of what rose are calls that the provider says it limits."""
        return max(one.added, key=one.added.__getitem__, default="") == LIMITED

    def goes_elsewhere(self, one: Explanation, suspect: Suspect, other: Suspect) -> bool:
        """Whether what else one suspect touches goes on well, without the other."""
        mine, theirs = suspect.touches, other.touches
        return self.ledger.wellness(one, lambda place: mine(place) and not theirs(place)) > WELL

    def hit_models(self, one: Explanation) -> int:
        """Return how many models of a suspect are hit."""
        parts = self.ledger.parts(_model_of, one.suspect.touches)
        return sum(self.ledger.wellness(one, part, PART_OF_OUTAGE) < HIT for part in parts)

    def called_models(self, one: Explanation) -> int:
        """Return how many models a suspect touches."""
        return len(self.ledger.parts(_model_of, one.suspect.touches))

    def _goes_well(
        self,
        one: Explanation,
        touches: Callable[[Dimensions], bool],
        read: Callable[[Dimensions], object],
    ) -> bool:
        if self.ledger.wellness(one, touches) > WELL:
            return True
        return any(
            self.ledger.wellness(one, part) > WELL for part in self.ledger.parts(read, touches)
        )

    def is_one_kind(self) -> bool:
        """Whether one kind rose; runs that were told without their calls may hide any."""
        risen = {kind: more for kind, more in self.by_kind.items() if more > 0}
        told = [more for kind, more in risen.items() if kind != UNSAID]
        return any(
            max(rose, default=0.0) >= MOST_OF_IT * sum(rose)
            for rose in (list(risen.values()), told)
        )

    def is_valid(self, one: Explanation) -> bool:
        """Whether a suspect may be named at all."""
        if not self.is_whole(one):
            return False
        match one.suspect.cause:
            case Cause.PROVIDER_OUTAGE:
                hit, called = self.hit_models(one), self.called_models(one)
                return hit >= 2 or (hit == called and self.is_outage_compared(one))
            case Cause.MODEL | Cause.SOURCE:
                return self.is_compared(one)
            case Cause.VALIDATOR:
                return self._is_everywhere(one) and self.is_one_kind()
            case Cause.PAIR:
                return self._is_pair(one)
            case Cause.SERVED:
                return self._is_served_otherwise(one)
        touches = one.suspect.touches
        if self.called_models(one) > 1:
            return not self._is_at_one_model(one)
        is_just_then = self.timing.is_sharp and self._is_just_then(one.suspect)
        return is_just_then or self.ledger.wellness(one, lambda place: not touches(place)) > WELL

    def _is_everywhere(self, one: Explanation) -> bool:
        """Whether it is still seen without its worst model, without its worst source, and both.

        Two troubles together may touch every model and every source, but not each with each.
        """
        touches = one.suspect.touches
        model = self._worst(one, _model_of, touches)
        if not self._is_seen_without(model, one):
            return False
        if len(self.ledger.values(source_of, touches)) < 2:
            return True
        if not self._is_seen_without(self._worst(one, source_of, touches), one):
            return False
        others = _except(touches, model)
        source = self._worst(one, source_of, others)
        return self.ledger.wellness(one, _except(others, source)) <= HIT

    def _is_seen_without(self, part: Callable[[Dimensions], bool], one: Explanation) -> bool:
        rest = self.ledger.without(part).explain(one.suspect)
        return rest.excess >= LEAST_EXCESS and rest.weight >= UNSURE_WEIGHT

    def _is_at_one_model(self, one: Explanation) -> bool:
        """Whether only its worst model is hit: the others are well beside that."""
        touches = one.suspect.touches
        worst = self._worst(one, _model_of, touches)
        alone = self.ledger.explain(replace(one.suspect, touches=worst))
        return self.ledger.wellness(alone, _except(touches, worst)) > HIT

    def _worst(
        self,
        one: Explanation,
        read: Callable[[Dimensions], object],
        touches: Callable[[Dimensions], bool],
    ) -> Callable[[Dimensions], bool]:
        parts = self.ledger.parts(read, touches)
        return min(parts, key=lambda part: self.ledger.wellness(one, part))

    def _is_pair(self, one: Explanation) -> bool:
        """Whether only the two together explain it, or nothing tells which of them it is."""
        ours, model = one.suspect.of
        first = self.goes_elsewhere(one, ours, model)
        second = self.goes_elsewhere(one, model, ours)
        if first and second:
            return True
        if not first and not second:
            return self.ledger.are_the_same(ours.touches, model.touches)
        return first and ours.is_new and self._is_just_then(ours)

    def _is_served_otherwise(self, one: Explanation) -> bool:
        """Whether its models were answered by something else before, or are and go well.

        An agent that only begins to tell what answers has not changed it.
        """
        touches = one.suspect.touches
        models = self.ledger.values(_model_of, touches)
        return models <= self.served_before or self._goes_well(
            one, lambda place: not touches(place) and _model_of(place) in models, _served_of
        )

    def _is_just_then(self, ours: Suspect) -> bool:
        begun = self.timing.first_call(ours.touches)
        return begun is not None and self.timing.is_near(begun)


def choose(contenders: Sequence[Explanation], inquiry: Inquiry) -> Explanation | None:
    """Choose among suspects that explain about the same; None: they cannot be told apart."""
    by_cause: dict[Cause, list[Explanation]] = defaultdict(list)
    for one in contenders:
        by_cause[one.suspect.cause].append(one)
    outage = _only(by_cause[Cause.PROVIDER_OUTAGE])
    pair = max(by_cause[Cause.PAIR], key=lambda one: one.weight, default=None)
    # A storm of one source's calls is refused, as those to a provider in trouble are.
    is_storm = pair is not None and not pair.suspect.is_new and inquiry.is_refused(pair)
    if outage and not (is_storm and inquiry.called_models(outage) == 1):
        return outage
    model = _only([one for one in by_cause[Cause.MODEL] if not one.suspect.node])
    served = max(by_cause[Cause.SERVED], key=lambda one: one.weight, default=None)
    if served:
        return served
    new = [one for cause in OURS for one in by_cause[cause]]
    if new:
        ours = _blame_ours(new, inquiry.timing)
        if ours and pair and (model is None or pair.suspect.of[1].value == model.suspect.value):
            return pair if not inquiry.goes_elsewhere(pair, *pair.suspect.of[::-1]) else ours
        return _ours_or_theirs(ours, model, inquiry) if model else ours
    source = _only(by_cause[Cause.SOURCE])
    if pair and (pair.suspect.is_new or not (model or source)):
        return pair
    if model and source:
        return pair
    checks = max(by_cause[Cause.VALIDATOR], key=lambda one: bool(one.suspect.value), default=None)
    if model and checks and model.rest >= ANOTHER_WEIGHT:
        return checks
    at_node = _only([one for one in by_cause[Cause.MODEL] if one.suspect.node])
    return model or source or checks or at_node


MUCH_MORE = 6.0
"""How much better one of two must explain it to be named though the other would do."""


def _ours_or_theirs(
    ours: Explanation | None, model: Explanation, inquiry: Inquiry
) -> Explanation | None:
    """Tell something new from a model whose calls it has; None: neither is likelier."""
    if ours is None:
        return None
    if abs(ours.weight - model.weight) >= MUCH_MORE:
        return max(ours, model, key=lambda one: one.weight)
    return None


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


def _only(found: Sequence[Explanation]) -> Explanation | None:
    return found[0] if len(found) == 1 else None


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
    suspects: tuple[Suspect, ...] = ()
    """Without the calls of which, one after the other, may be seen what else there is."""
    is_new: bool = False
    """Whether the cause is a version that began with it."""
    is_compared: bool = True
    """Whether other calls went on well, without which nothing can be told apart."""


def find_cause(
    cells: Sequence[CountCell], before: Sequence[CountCell], timing: Timing = UNTIMED
) -> Finding:
    """Say what the failures of a window come from, given a healthy stretch before it."""
    if sum(cell.attempts for cell in cells) < LEAST_CALLS:
        return Finding(Cause.NOT_ENOUGH_DATA)
    usual = FailureBaseline.of(before)
    ledger = EvidenceSums.of(cells, usual)
    suspects = suspects_of(cells, before, timing)
    found = [ledger.explain(one) for one in suspects]
    by_kind = _by_kind(cells, usual)
    excess = sum(by_kind.values())
    # What fails less elsewhere must not hide what fails more here.
    best = _heaviest(one for one in found if one.excess >= LEAST_EXCESS)
    if best < LEAST_WEIGHT:
        return Finding(Cause.NOT_ENOUGH_DATA if _is_unsure(found) else None, excess=excess)
    told_before = (cell.place for cell in before if cell.place.served is not None)
    inquiry = Inquiry(ledger, timing, by_kind, frozenset(map(_model_of, told_before)))
    pairs = pairs_of(_strongest(found), cells, before, timing)
    found += [ledger.explain(one) for one in pairs]
    contenders = _contenders(found, best, inquiry)
    chosen = choose(contenders, inquiry)
    parts = [chosen] if chosen else _two_at_once(found, inquiry)
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
        () if chosen else tuple(one.suspect.value for one in parts),
        tuple(map(_as_seen, parts if chosen else _foremost(found, parts, inquiry))),
        bool(chosen and chosen.suspect.is_new),
        _is_compared(chosen, inquiry) if chosen else not _lacks_comparison(found, best, inquiry),
    )


def _is_unsure(found: Iterable[Explanation]) -> bool:
    return _heaviest(one for one in found if one.excess >= UNSURE_EXCESS) >= UNSURE_WEIGHT


def is_seen(cells: Sequence[CountCell], before: Sequence[CountCell], suspect: Suspect) -> bool:
    """Whether what a suspect touches fails more than usual in these calls, were it by little."""
    found = EvidenceSums.of(cells, FailureBaseline.of(before)).explain(suspect)
    return found.weight >= UNSURE_WEIGHT and found.excess >= UNSURE_EXCESS


def _is_compared(chosen: Explanation, inquiry: Inquiry) -> bool:
    is_outage = chosen.suspect.cause is Cause.PROVIDER_OUTAGE
    return not is_outage or inquiry.is_outage_compared(chosen)


def _lacks_comparison(found: Sequence[Explanation], best: float, inquiry: Inquiry) -> bool:
    """Whether a model or a source would explain it, and no other calls go on well."""
    return any(
        one.suspect.cause in OTHERS
        and one.weight >= LEAST_OF_BEST * best
        and one.share >= MOST_OF_IT
        and inquiry.is_whole(one)
        and not inquiry.is_compared(one)
        for one in found
    )


def _strongest(found: Sequence[Explanation]) -> list[Suspect]:
    named = [one for one in found if one.suspect.value and one.excess >= LEAST_EXCESS]
    return [one.suspect for one in sorted(named, key=lambda one: -one.weight)[:MOST_TRIED]]


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
    "source": source_of,
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


def _contenders(found: Sequence[Explanation], best: float, inquiry: Inquiry) -> list[Explanation]:
    """Keep what may be named and leaves nothing else, about as well as the best of these.

    None, where something explains much more of it that is not all of it. What may not be
    named is left out before the others are measured by the best.
    """
    whole = [
        one
        for one in found
        if one.excess >= LEAST_EXCESS
        and one.weight >= LEAST_OF_BEST * best
        and one.share >= MOST_OF_IT
        and (one.rest < ANOTHER_WEIGHT or one.share >= 1 - ANOTHER_SHARE)
        and inquiry.is_valid(one)
    ]
    heaviest = _heaviest(whole)
    near = heaviest - TOLERANCE - heaviest / 20
    return [one for one in whole if one.weight >= near]


def _two_at_once(found: Sequence[Explanation], inquiry: Inquiry) -> list[Explanation]:
    """Return the two suspects that together explain most, each beside the other."""
    named = [
        one
        for one in found
        if one.weight >= LEAST_WEIGHT
        and one.excess >= LEAST_EXCESS
        and one.suspect.cause not in (Cause.VALIDATOR, Cause.PAIR)
        and inquiry.is_whole(one)
    ]
    tried = sorted(named, key=lambda one: -one.weight)[:MOST_TRIED]
    best: tuple[float, list[Explanation]] = (0.0, tried[:1])
    for place, one in enumerate(tried):
        rest = inquiry.ledger.without(one.suspect.touches)
        for other in tried[place + 1 :]:
            beside = rest.explain(other.suspect)
            is_there = beside.weight >= LEAST_WEIGHT and beside.excess >= LEAST_EXCESS
            if is_there and one.weight + beside.weight > best[0]:
                best = one.weight + beside.weight, [one, other]
    return best[1] if len(best[1]) == 2 else []


def _as_seen(one: Explanation) -> Suspect:
    """Return a suspect with the kinds of failure that rose; an outage makes all of its kinds."""
    if one.suspect.cause is Cause.PROVIDER_OUTAGE:
        return one.suspect
    return replace(one.suspect, kinds=frozenset(one.added))


def _foremost(
    found: Sequence[Explanation], parts: Sequence[Explanation], inquiry: Inquiry
) -> list[Explanation]:
    """Return the parts, and what explains most by itself of all that may be named."""
    named = (one for one in found if one.excess >= LEAST_EXCESS and inquiry.is_valid(one))
    first = max(named, key=lambda one: one.weight, default=None)
    return [*parts, first] if first and first not in parts else [*parts]


def _any_of(parts: Sequence[Explanation]) -> Callable[[Dimensions], bool]:
    """Whether a place is touched by one of these; where there are none, all are."""
    if not parts:
        return lambda _: True
    return lambda place: any(one.suspect.touches(place) for one in parts)
