"""What people know of causes: a subset and the kinds that rose in it make a cause.

The model says which calls got worse; this table says what that is called.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from diagnostics.verdict.cause import VERSIONS, Cause
from diagnostics.verdict.cells import TRANSPORT
from diagnostics.verdict.counted import CellCounts, risen_kinds
from diagnostics.verdict.explainer import Explanation
from diagnostics.verdict.hypotheses import Part, Subset, Timing

REJECTED = frozenset({"call_other"})
"""The kind of calls that a provider rejects, as with a revoked key."""
LEAST_PART = 0.25
"""The share of the largest rise that another kind must have to say what sort of cause it is."""
NAMED = 0.8
"""The share of an answer that one of several names must have."""


Weighted = tuple[Subset, float]
"""A subset and its share of an answer."""


@dataclass(frozen=True, slots=True)
class CauseName:
    """What a subset is called."""

    cause: Cause
    value: str
    subset: Subset
    weight: float = 1.0
    """Its share of the answer."""

    @property
    def key(self) -> tuple[Cause, str]:
        return self.cause, self.value


SINGLE: Mapping[str, Cause] = {
    "provider": Cause.PROVIDER_OUTAGE,
    "model": Cause.MODEL,
    "served": Cause.SERVED,
    "upstream": Cause.UPSTREAM,
    "environment": Cause.ENVIRONMENT,
    "region": Cause.REGION,
    "node": Cause.VALIDATOR,
    "source": Cause.SOURCE,
    "credential": Cause.CREDENTIAL,
    "prompt_version": Cause.PROMPT,
    "schema": Cause.SCHEMA,
    "release": Cause.RELEASE,
}
ORDER = tuple(SINGLE)
"""In a pair, what is ours is named before what is theirs."""
ACCOUNT = frozenset({"source", "provider"})
"""What one credential is used for."""
PLACES = {"environment": " in {}", "node": " at the node {}"}
"""Where calls are made: a cause may be limited to one of these, which is no second cause."""
HOSTED = frozenset({"provider", "model", "served"})
THEIRS = frozenset({Cause.PROVIDER_OUTAGE, Cause.MODEL, Cause.SERVED, Cause.UPSTREAM})
UNCHANGED = (*VERSIONS, Cause.SERVED, Cause.UPSTREAM)
"""Causes that are not named for what was there before, if another value has the same calls."""


def cause_of(subset: Subset, kinds: Sequence[str]) -> tuple[Cause, str]:
    """Return what a subset with raised failures of some kinds is called: cause and value."""
    if not subset.parts:
        return (Cause.ENVIRONMENT if set(kinds) <= TRANSPORT else Cause.VALIDATOR), ""
    if len(subset.parts) == 1:
        return _single_cause(subset.parts[0], kinds)
    by_dimension = dict(subset.parts)
    names = set(by_dimension)
    if names == ACCOUNT and set(kinds) <= REJECTED:
        return Cause.CREDENTIAL, _both(subset.parts)
    if "upstream" in names and names & HOSTED:
        return Cause.UPSTREAM, by_dimension["upstream"]
    others = [part for part in subset.parts if part[0] not in PLACES]
    if len(others) == 1:
        return _single_cause(others[0], kinds)
    return Cause.PAIR, _both(subset.parts)


def _single_cause(part: Part, kinds: Sequence[str]) -> tuple[Cause, str]:
    dimension, value = part
    is_answering = dimension == "provider" and not set(kinds) <= TRANSPORT
    return (Cause.UPSTREAM if is_answering else SINGLE[dimension]), value


def place_of(subset: Subset) -> str:
    """Return the environment, the node, or what an upstream hosts that a cause is limited to."""
    if "upstream" in subset.dimensions:
        hosted = "".join(f" for {value}" for name, value in subset.parts if name in HOSTED)
        return f"{hosted}{place_words(subset.parts)}"
    return "" if PLACES.keys() >= set(subset.dimensions) else place_words(subset.parts)


def place_words(parts: Iterable[tuple[str, str | None]]) -> str:
    return "".join(PLACES[name].format(value) for name, value in parts if value and name in PLACES)


def _both(parts: Sequence[Part]) -> str:
    ordered = sorted(parts, key=lambda part: -ORDER.index(part[0]))
    return " with ".join(value for _, value in ordered)


def names_of(answer: Explanation, counted: CellCounts, timing: Timing) -> list[CauseName]:
    """Return what an answer may be called, the likeliest first.

    1. What is new and began with it, if anything: the prompt before the release that brought
       it, unless only the release was reported.
    2. If all calls are hit, of several models: the only provider, if they get no answer; bad
       answers may be ours as well.
    3. Else each value, versions that were there before only if there is nothing else.
    """
    risen = risen_kinds(answer.cells, counted, LEAST_PART)
    kinds = [kind for kind in risen if kind in answer.kinds] or answer.kinds
    weighted = _merged(list(zip(answer.subsets, answer.names, strict=True)), kinds, counted)
    new = [pair for pair in weighted if pair[0].is_new]
    old = [pair for pair in weighted if not pair[0].is_new]
    names = _new_names(new, kinds, timing)
    models = {cell.place[:2] for cell in counted.cells}
    if len(models) > 1 and any(not subset.parts for subset, _ in old):
        return _scaled([*names, *_add_up(_whole(old, kinds), kinds)])
    names += _add_up(old, kinds)
    known = [name for name in names if name.subset.is_new or name.cause not in UNCHANGED]
    return _scaled(known or names)


def _whole(weighted: Sequence[Weighted], kinds: Sequence[str]) -> list[Weighted]:
    """Return the names of all calls, with the weight of all: everything, and the only provider."""
    kept = [pair for pair in weighted if pair[0].dimensions == ("provider",)]
    if not kept or not set(kinds) <= TRANSPORT:
        kept += [pair for pair in weighted if not pair[0].parts]
    share = sum(weight for _, weight in weighted) / sum(weight for _, weight in kept)
    return [(subset, weight * share) for subset, weight in kept]


def _merged(
    weighted: Sequence[Weighted], kinds: Sequence[str], counted: CellCounts
) -> list[Weighted]:
    """Return subsets without those that are only another word for one with the same cells.

    No answer is an outage of a provider and not of its only model, a bad or a refused one the
    model's. A new host is the upstream, unless another model answers there.
    """
    singles = {subset.dimensions: subset for subset, _ in weighted}
    dropped = set[tuple[str, ...]]()
    hosts = [dimensions for dimensions in singles if "upstream" in dimensions]
    if ("served",) in singles and hosts:
        served = singles["served",]
        answered = served.parts[0][1].partition(" at ")[0]
        is_other = any(counted.cells[index].place.model != answered for index in served.cells)
        dropped |= {*hosts} if is_other else {("served",)}
    if ("credential",) in singles:
        dropped |= {names for names in singles if set(names) == ACCOUNT}
    answerer = "provider" if set(kinds) <= TRANSPORT - REJECTED else "model"
    kept = [pair for pair in weighted if pair[0].dimensions not in dropped]
    whole = sum(weight for _, weight in kept)
    return [(_said_as(subset, answerer, counted), weight / whole) for subset, weight in kept]


def _said_as(subset: Subset, answerer: str, counted: CellCounts) -> Subset:
    """Return a subset with a provider, or its only model, called what fails in this way."""
    cells = {single.parts[0]: single.cells for single in counted.singles if single.parts}

    def said(part: Part) -> Part:
        if part[0] not in {"provider", "model"}:
            return part
        named = (other for other in cells if other[0] == answerer)
        same = (other for other in named if cells[other] == cells[part])
        return next(same, part)

    return replace(subset, parts=tuple(map(said, subset.parts)))


def _new_names(new: Sequence[Weighted], kinds: Sequence[str], timing: Timing) -> list[CauseName]:
    names = _add_up(new, kinds)
    versions = {name.cause for name in names} & {*VERSIONS}
    if len(versions) > 1:
        reported = {cause for cause in versions if cause.value in timing.deploy_kinds()}
        versions = reported if len(reported) == 1 else versions - {Cause.RELEASE}
    kept = [name for name in names if not versions or name.cause in versions]
    part = sum(name.weight for name in kept) / (sum(name.weight for name in names) or 1.0)
    return [replace(name, weight=name.weight / part) for name in kept]


def _add_up(weighted: Sequence[Weighted], kinds: Sequence[str]) -> list[CauseName]:
    names: dict[tuple[Cause, str], CauseName] = {}
    for subset, weight in weighted:
        key = cause_of(subset, kinds)
        known = names.get(key)
        names[key] = CauseName(
            *key, known.subset if known else subset, weight + (known.weight if known else 0.0)
        )
    return list(names.values())


def _scaled(names: Sequence[CauseName]) -> list[CauseName]:
    names = sorted(names, key=lambda name: -name.weight)
    whole = sum(name.weight for name in names) or 1.0
    if names[0].weight >= NAMED * whole:
        return [replace(names[0], weight=1.0)]
    return [replace(name, weight=name.weight / whole) for name in names]
