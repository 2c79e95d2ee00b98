"""Which suspect it was.

A suspect is named if it explains four fifths of the excess about as well as the best one, if
every frequent part of its calls is hit, and if calls that it does not touch still succeed:
without such calls there is nothing to compare with.
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
"""How much likelier (log) calls must be at their baseline than hit, to be a comparison."""
HIT = 0.0
"""A part with a lower log ratio is more likely hit than not."""
ANOTHER_WEIGHT = 6.0
"""The unexplained weight from which on there is a second cause."""
LEAST_CALLS = 20
LEAST_EXCESS = 3.5
LEAST_WEIGHT = 6.0
UNSURE_WEIGHT = 2.0
UNSURE_EXCESS = 2.0
"""From here on something may be wrong, but there is too little evidence."""
TOLERANCE = 4.0
"""Weights closer than this (and a twentieth of the best) count as equal."""
LEAST_OF_BEST = 0.6
"""The share of the best weight that a complete explanation must have."""
LEAST_PART = 0.1
"""The share of the largest rise that another kind must have to count as risen."""
ANOTHER_SHARE = 0.06
"""The unexplained share from which on there is a second cause."""
MOST_TRIED = 14
"""How many suspects are tried in pairs as two simultaneous causes."""


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
"""How the calls of a suspect are divided: none of the parts may succeed."""
OTHERS: Mapping[Cause, Callable[[Dimensions], object]] = {
    Cause.PROVIDER_OUTAGE: lambda place: place.provider,
    Cause.MODEL: _model_of,
    Cause.SOURCE: source_of,
}
"""How calls untouched by a suspect are divided: at least one part must succeed."""


def _except(
    touches: Callable[[Dimensions], bool], part: Callable[[Dimensions], bool]
) -> Callable[[Dimensions], bool]:
    return lambda place: touches(place) and not part(place)


@dataclass(frozen=True, slots=True)
class Inquiry:
    """The evidence since an onset, and the tests that suspects must pass."""

    ledger: EvidenceSums
    timing: Timing
    by_kind: Mapping[str, float]
    """The excess of each kind of failure."""
    served_before: frozenset[object] = frozenset()
    """Models whose actual answerer was reported before the onset."""

    def is_whole(self, explanation: Explanation) -> bool:
        """Whether no part of a suspect's calls still succeeds."""
        part = PART_OF_OUTAGE if explanation.suspect.cause is Cause.PROVIDER_OUTAGE else PART
        touches = explanation.suspect.touches
        return not any(
            self.ledger.wellness(explanation, part_touches, part) > WELL
            for read in PARTS.get(explanation.suspect.cause, ())
            for part_touches in self.ledger.parts(read, touches)
        )

    def is_compared(self, explanation: Explanation) -> bool:
        """Whether comparable calls that a suspect does not touch still succeed."""
        read, touches = OTHERS[explanation.suspect.cause], explanation.suspect.touches
        return self._goes_well(explanation, lambda place: not touches(place), read)

    def is_outage_compared(self, explanation: Explanation) -> bool:
        """Whether other providers answer, or this one reports that it rate-limits."""
        return self.is_refused(explanation) or self.is_compared(explanation)

    def is_refused(self, explanation: Explanation) -> bool:
        """Whether most of the rise are calls refused by the provider's rate limit."""
        return max(explanation.added, key=explanation.added.__getitem__, default="") == LIMITED

    def goes_elsewhere(self, explanation: Explanation, suspect: Suspect, other: Suspect) -> bool:
        """Whether calls of one suspect without the other still succeed."""
        touches, other_touches = suspect.touches, other.touches
        return (
            self.ledger.wellness(
                explanation, lambda place: touches(place) and not other_touches(place)
            )
            > WELL
        )

    def hit_models(self, explanation: Explanation) -> int:
        """Return how many models of a suspect are hit."""
        parts = self.ledger.parts(_model_of, explanation.suspect.touches)
        return sum(self.ledger.wellness(explanation, part, PART_OF_OUTAGE) < HIT for part in parts)

    def called_models(self, explanation: Explanation) -> int:
        """Return how many models a suspect touches."""
        return len(self.ledger.parts(_model_of, explanation.suspect.touches))

    def _goes_well(
        self,
        explanation: Explanation,
        touches: Callable[[Dimensions], bool],
        read: Callable[[Dimensions], object],
    ) -> bool:
        if self.ledger.wellness(explanation, touches) > WELL:
            return True
        return any(
            self.ledger.wellness(explanation, part) > WELL
            for part in self.ledger.parts(read, touches)
        )

    def is_one_kind(self) -> bool:
        """Whether a single kind rose, with or without runs reported without their calls."""
        risen = {kind: excess for kind, excess in self.by_kind.items() if excess > 0}
        known = [excess for kind, excess in risen.items() if kind != UNSAID]
        return any(
            max(excesses, default=0.0) >= MOST_OF_IT * sum(excesses)
            for excesses in (list(risen.values()), known)
        )

    def is_valid(self, explanation: Explanation) -> bool:
        """Whether a suspect may be named."""
        if not self.is_whole(explanation):
            return False
        match explanation.suspect.cause:
            case Cause.PROVIDER_OUTAGE:
                hit, called = self.hit_models(explanation), self.called_models(explanation)
                return hit >= 2 or (hit == called and self.is_outage_compared(explanation))
            case Cause.MODEL | Cause.SOURCE:
                return self.is_compared(explanation)
            case Cause.VALIDATOR:
                return self._is_everywhere(explanation) and self.is_one_kind()
            case Cause.PAIR:
                return self._is_pair(explanation)
            case Cause.SERVED:
                return self._is_served_otherwise(explanation)
        touches = explanation.suspect.touches
        if self.called_models(explanation) > 1:
            return not self._is_at_one_model(explanation)
        is_just_then = self.timing.is_sharp and self._is_just_then(explanation.suspect)
        return (
            is_just_then
            or self.ledger.wellness(explanation, lambda place: not touches(place)) > WELL
        )

    def _is_everywhere(self, explanation: Explanation) -> bool:
        """Whether it persists without its worst model, without its worst source, and without both.

        Two independent causes may touch every model and every source, but not every combination.
        """
        touches = explanation.suspect.touches
        model = self._worst(explanation, _model_of, touches)
        if not self._is_seen_without(model, explanation):
            return False
        if len(self.ledger.values(source_of, touches)) < 2:
            return True
        if not self._is_seen_without(self._worst(explanation, source_of, touches), explanation):
            return False
        others = _except(touches, model)
        source = self._worst(explanation, source_of, others)
        return self.ledger.wellness(explanation, _except(others, source)) <= HIT

    def _is_seen_without(
        self, part: Callable[[Dimensions], bool], explanation: Explanation
    ) -> bool:
        remainder = self.ledger.without(part).explain(explanation.suspect)
        return remainder.excess >= LEAST_EXCESS and remainder.weight >= UNSURE_WEIGHT

    def _is_at_one_model(self, explanation: Explanation) -> bool:
        """Whether only its worst model is hit, and the others succeed by comparison."""
        touches = explanation.suspect.touches
        worst = self._worst(explanation, _model_of, touches)
        alone = self.ledger.explain(replace(explanation.suspect, touches=worst))
        return self.ledger.wellness(alone, _except(touches, worst)) > HIT

    def _worst(
        self,
        explanation: Explanation,
        read: Callable[[Dimensions], object],
        touches: Callable[[Dimensions], bool],
    ) -> Callable[[Dimensions], bool]:
        parts = self.ledger.parts(read, touches)
        return min(parts, key=lambda part: self.ledger.wellness(explanation, part))

    def _is_pair(self, explanation: Explanation) -> bool:
        """Whether only both together explain it, or they cannot be distinguished."""
        ours, model = explanation.suspect.of
        first = self.goes_elsewhere(explanation, ours, model)
        second = self.goes_elsewhere(explanation, model, ours)
        if first and second:
            return True
        if not first and not second:
            return self.ledger.are_the_same(ours.touches, model.touches)
        return first and ours.is_new and self._is_just_then(ours)

    def _is_served_otherwise(self, explanation: Explanation) -> bool:
        """Whether its models had another answerer before, or still have one and succeed.

        An agent that merely starts to report the answerer has not changed it.
        """
        touches = explanation.suspect.touches
        models = self.ledger.values(_model_of, touches)
        return models <= self.served_before or self._goes_well(
            explanation, lambda place: not touches(place) and _model_of(place) in models, _served_of
        )

    def _is_just_then(self, ours: Suspect) -> bool:
        begun = self.timing.first_call(ours.touches)
        return begun is not None and self.timing.is_near(begun)


def choose(contenders: Sequence[Explanation], inquiry: Inquiry) -> Explanation | None:
    """Choose among about equal suspects; None if they cannot be distinguished."""
    by_cause: dict[Cause, list[Explanation]] = defaultdict(list)
    for explanation in contenders:
        by_cause[explanation.suspect.cause].append(explanation)
    outage = _single_explanation(by_cause[Cause.PROVIDER_OUTAGE])
    pair = max(by_cause[Cause.PAIR], key=lambda explanation: explanation.weight, default=None)
    # A burst of calls from one source is rate-limited, which looks like a provider outage.
    is_storm = pair is not None and not pair.suspect.is_new and inquiry.is_refused(pair)
    if outage and not (is_storm and inquiry.called_models(outage) == 1):
        return outage
    model = _single_explanation(
        [explanation for explanation in by_cause[Cause.MODEL] if not explanation.suspect.node]
    )
    served = max(by_cause[Cause.SERVED], key=lambda explanation: explanation.weight, default=None)
    if served:
        return served
    new_versions = [explanation for cause in OURS for explanation in by_cause[cause]]
    if new_versions:
        ours = _choose_version(new_versions, inquiry.timing)
        if ours and pair and (model is None or pair.suspect.of[1].value == model.suspect.value):
            return pair if not inquiry.goes_elsewhere(pair, *pair.suspect.of[::-1]) else ours
        return _ours_or_theirs(ours, model, inquiry) if model else ours
    source = _single_explanation(by_cause[Cause.SOURCE])
    if pair and (pair.suspect.is_new or not (model or source)):
        return pair
    if model and source:
        return pair
    checks = max(
        by_cause[Cause.VALIDATOR],
        key=lambda explanation: bool(explanation.suspect.value),
        default=None,
    )
    if model and checks and model.rest >= ANOTHER_WEIGHT:
        return checks
    at_node = _single_explanation(
        [explanation for explanation in by_cause[Cause.MODEL] if explanation.suspect.node]
    )
    return model or source or checks or at_node


MUCH_MORE = 6.0
"""How much more weight one of two sufficient explanations needs to be named."""


def _ours_or_theirs(
    ours: Explanation | None, model: Explanation, inquiry: Inquiry
) -> Explanation | None:
    """Choose between a new version and a model with the same calls; None if neither is likelier."""
    if ours is None:
        return None
    if abs(ours.weight - model.weight) >= MUCH_MORE:
        return max(ours, model, key=lambda explanation: explanation.weight)
    return None


def _choose_version(new: Sequence[Explanation], timing: Timing) -> Explanation | None:
    """Of several new versions, choose the reported one, or what a release brought."""
    causes = {explanation.suspect.cause for explanation in new}
    reported = {cause for cause in causes if cause.value in timing.deploy_kinds()}
    if len(causes) > 1 and len(reported) == 1:
        causes = reported
    elif len(causes) > 1:
        causes -= {Cause.RELEASE}
    if len(causes) != 1:
        return None
    candidates = [explanation for explanation in new if explanation.suspect.cause in causes]
    return max(candidates, key=lambda explanation: explanation.weight)


def _single_explanation(explanations: Sequence[Explanation]) -> Explanation | None:
    return explanations[0] if len(explanations) == 1 else None


@dataclass(frozen=True, slots=True)
class ExcessShare:
    """The share of the excess that one value of a dimension has, and its share of calls."""

    dimension: str
    value: str
    share: float
    traffic_share: float

    @property
    def lift(self) -> float | None:
        """The share of the excess over the share of calls; None without calls."""
        return self.share / self.traffic_share if self.traffic_share else None


@dataclass(frozen=True, slots=True)
class Finding:
    """The cause of an excess; `cause` is None if there is no excess."""

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
    """The parts of it, if no single suspect explains it."""
    suspects: tuple[Suspect, ...] = ()
    """Suspects whose calls are left out, one after the other, to look for further causes."""
    is_new: bool = False
    """Whether the cause is a version that started with the excess."""
    is_compared: bool = True
    """Whether other calls still succeeded, as a comparison."""


def find_cause(
    cells: Sequence[CountCell], before: Sequence[CountCell], timing: Timing = UNTIMED
) -> Finding:
    """Return the cause of the failures in a window, given a healthy stretch before it."""
    if sum(cell.attempts for cell in cells) < LEAST_CALLS:
        return Finding(Cause.NOT_ENOUGH_DATA)
    baseline = FailureBaseline.of(before)
    ledger = EvidenceSums.of(cells, baseline)
    suspects = suspects_of(cells, before, timing)
    explanations = [ledger.explain(explanation) for explanation in suspects]
    by_kind = _by_kind(cells, baseline)
    excess = sum(by_kind.values())
    # A decrease elsewhere must not hide an increase here.
    best = _heaviest(
        explanation for explanation in explanations if explanation.excess >= LEAST_EXCESS
    )
    if best < LEAST_WEIGHT:
        return Finding(Cause.NOT_ENOUGH_DATA if _is_unsure(explanations) else None, excess=excess)
    served_places = (cell.place for cell in before if cell.place.served is not None)
    inquiry = Inquiry(ledger, timing, by_kind, frozenset(map(_model_of, served_places)))
    pairs = pairs_of(_strongest(explanations), cells, before, timing)
    explanations += [ledger.explain(explanation) for explanation in pairs]
    contenders = _contenders(explanations, best, inquiry)
    chosen = choose(contenders, inquiry)
    parts = [chosen] if chosen else _two_at_once(explanations, inquiry)
    touches = _any_of(parts)
    hit = [cell for cell in cells if touches(cell.place) and cell.failed]
    return Finding(
        chosen.suspect.cause if chosen else Cause.MIXED,
        chosen.suspect.value if chosen else "",
        chosen.excess if chosen else excess,
        *_risen(by_kind),
        len({cell.place.prompt_version for cell in hit}),
        len({(cell.place.provider, cell.place.model) for cell in hit}),
        shares_of(cells, baseline),
        touches,
        () if chosen else tuple(explanation.suspect.value for explanation in parts),
        tuple(
            map(
                _observed_suspect,
                parts if chosen else _with_strongest(explanations, parts, inquiry),
            )
        ),
        bool(chosen and chosen.suspect.is_new),
        _is_compared(chosen, inquiry)
        if chosen
        else not _lacks_comparison(explanations, best, inquiry),
    )


def _is_unsure(explanations: Iterable[Explanation]) -> bool:
    return (
        _heaviest(
            explanation for explanation in explanations if explanation.excess >= UNSURE_EXCESS
        )
        >= UNSURE_WEIGHT
    )


def is_seen(cells: Sequence[CountCell], before: Sequence[CountCell], suspect: Suspect) -> bool:
    """Whether a suspect's calls fail more than their baseline, even slightly."""
    explanation = EvidenceSums.of(cells, FailureBaseline.of(before)).explain(suspect)
    return explanation.weight >= UNSURE_WEIGHT and explanation.excess >= UNSURE_EXCESS


def _is_compared(chosen: Explanation, inquiry: Inquiry) -> bool:
    is_outage = chosen.suspect.cause is Cause.PROVIDER_OUTAGE
    return not is_outage or inquiry.is_outage_compared(chosen)


def _lacks_comparison(explanations: Sequence[Explanation], best: float, inquiry: Inquiry) -> bool:
    """Whether a model or source would explain it, but no other calls succeed."""
    return any(
        explanation.suspect.cause in OTHERS
        and explanation.weight >= LEAST_OF_BEST * best
        and explanation.share >= MOST_OF_IT
        and inquiry.is_whole(explanation)
        and not inquiry.is_compared(explanation)
        for explanation in explanations
    )


def _strongest(explanations: Sequence[Explanation]) -> list[Suspect]:
    candidates = [
        explanation
        for explanation in explanations
        if explanation.suspect.value and explanation.excess >= LEAST_EXCESS
    ]
    return [
        explanation.suspect
        for explanation in sorted(candidates, key=lambda explanation: -explanation.weight)[
            :MOST_TRIED
        ]
    ]


def shares_of(cells: Sequence[CountCell], baseline: FailureBaseline) -> tuple[ExcessShare, ...]:
    """Return the shares of excess and calls by every dimension, the largest first."""
    calls = sum(cell.attempts for cell in cells)
    excesses = [(cell, sum(excess_of(cell, baseline).values())) for cell in cells]
    excess = sum(cell_excess for _, cell_excess in excesses)
    shares = []
    for dimension, read in _READ.items():
        parts: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for cell, cell_excess in excesses:
            part = parts[read(cell.place) or "unknown"]
            part[0] += cell_excess
            part[1] += cell.attempts
        shares += [
            ExcessShare(dimension, value, part / excess, calls_of_part / calls)
            for value, (part, calls_of_part) in parts.items()
            if excess > 0
        ]
    return tuple(sorted(shares, key=lambda share: -share.share))


_READ: Mapping[str, Callable[[Dimensions], str | None]] = {
    "provider": lambda place: place.provider,
    "model": lambda place: place.model,
    "prompt_version": lambda place: place.prompt_version,
    "schema": DIMENSIONS[Cause.SCHEMA],
    "release": DIMENSIONS[Cause.RELEASE],
    "source": source_of,
}


def _by_kind(cells: Sequence[CountCell], baseline: FailureBaseline) -> dict[str, float]:
    by_kind = dict.fromkeys(FAILURE_KINDS, 0.0)
    for kind, excess in chain.from_iterable(excess_of(cell, baseline).items() for cell in cells):
        by_kind[kind] += excess
    return by_kind


def _risen(by_kind: Mapping[str, float]) -> tuple[str, tuple[str, ...]]:
    """Return the kind that rose most, and all that rose a tenth as much."""
    kinds = sorted(by_kind, key=by_kind.__getitem__, reverse=True)
    least = by_kind[kinds[0]] * LEAST_PART
    return kinds[0], tuple(kind for kind in kinds if by_kind[kind] >= least)


def _heaviest(explanations: Iterable[Explanation]) -> float:
    return max((explanation.weight for explanation in explanations), default=0.0)


def _contenders(
    explanations: Sequence[Explanation], best: float, inquiry: Inquiry
) -> list[Explanation]:
    """Return the valid, complete explanations that are about as good as the best of them.

    There are none if an incomplete explanation has much more weight. Invalid ones are dropped
    before the others are compared with the best.
    """
    complete = [
        explanation
        for explanation in explanations
        if explanation.excess >= LEAST_EXCESS
        and explanation.weight >= LEAST_OF_BEST * best
        and explanation.share >= MOST_OF_IT
        and (explanation.rest < ANOTHER_WEIGHT or explanation.share >= 1 - ANOTHER_SHARE)
        and inquiry.is_valid(explanation)
    ]
    heaviest = _heaviest(complete)
    threshold = heaviest - TOLERANCE - heaviest / 20
    return [explanation for explanation in complete if explanation.weight >= threshold]


def _two_at_once(explanations: Sequence[Explanation], inquiry: Inquiry) -> list[Explanation]:
    """Return the two suspects that together explain most of the excess."""
    candidates = [
        explanation
        for explanation in explanations
        if explanation.weight >= LEAST_WEIGHT
        and explanation.excess >= LEAST_EXCESS
        and explanation.suspect.cause not in (Cause.VALIDATOR, Cause.PAIR)
        and inquiry.is_whole(explanation)
    ]
    strongest = sorted(candidates, key=lambda explanation: -explanation.weight)[:MOST_TRIED]
    best: tuple[float, list[Explanation]] = (0.0, strongest[:1])
    for index, explanation in enumerate(strongest):
        remainder = inquiry.ledger.without(explanation.suspect.touches)
        for other in strongest[index + 1 :]:
            beside = remainder.explain(other.suspect)
            is_there = beside.weight >= LEAST_WEIGHT and beside.excess >= LEAST_EXCESS
            if is_there and explanation.weight + beside.weight > best[0]:
                best = explanation.weight + beside.weight, [explanation, other]
    return best[1] if len(best[1]) == 2 else []


def _observed_suspect(explanation: Explanation) -> Suspect:
    """Return a suspect with the kinds that rose; an outage keeps all of its kinds."""
    if explanation.suspect.cause is Cause.PROVIDER_OUTAGE:
        return explanation.suspect
    return replace(explanation.suspect, kinds=frozenset(explanation.added))


def _with_strongest(
    explanations: Sequence[Explanation], parts: Sequence[Explanation], inquiry: Inquiry
) -> list[Explanation]:
    """Return the parts with the strongest valid explanation."""
    candidates = (
        explanation
        for explanation in explanations
        if explanation.excess >= LEAST_EXCESS and inquiry.is_valid(explanation)
    )
    strongest = max(candidates, key=lambda explanation: explanation.weight, default=None)
    return [*parts, strongest] if strongest and strongest not in parts else [*parts]


def _any_of(parts: Sequence[Explanation]) -> Callable[[Dimensions], bool]:
    """Return whether a place is touched by any of these; with none, every place is."""
    if not parts:
        return lambda _: True
    return lambda place: any(explanation.suspect.touches(place) for explanation in parts)
