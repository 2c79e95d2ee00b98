"""What can happen, one function a kind: what changes, and what the truth is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from agents.demo.traffic_model import (
    PROMPTS,
    SCHEMAS,
    SILENT,
    Rates,
    TrafficShape,
    World,
    scale_usual,
    with_usual,
)
from diagnostics.verdict.cells import Dimensions
from diagnostics.verdict.suspects import Cause

BAD_KINDS = ("truncated", "schema_invalid", "not_json", "refusal", "empty_output")
NEW_RELEASE = "2026.11.21-3"
WORSE_BY = (2.5, 4.0)

Move = Callable[[Dimensions], Dimensions]
Worse = Callable[[Dimensions], Rates]


@dataclass(frozen=True, slots=True)
class InjectedChange:
    """Something that was changed: when, relative to the onset, and whether it is told."""

    after: timedelta
    kind: str
    version: str
    source: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What happened: the world once it had, which calls fail how, and the truth."""

    world: World
    cause: Cause | None
    value: str = ""
    top_kind: str = ""
    model: tuple[str, str] | None = None
    provider: str | None = None
    worse: Worse | None = None
    changes: tuple[InjectedChange, ...] = ()
    moved_after: timedelta = timedelta(0)
    """When calls move to where the world says, relative to the onset."""


Happen = Callable[[World, TrafficShape, Random], Trouble]


def _raised(world: World, raised: Mapping[str, float]) -> Callable[[Dimensions], Rates]:
    def rates(place: Dimensions) -> Rates:
        usual = world.rates(place)
        return {**usual, **{k: usual.get(k, 0.0) + more for k, more in raised.items()}}

    return rates


def _where(world: World, touched: Callable[[Dimensions], bool], worse: Worse) -> Worse:
    return lambda place: worse(place) if touched(place) else world.rates(place)


def _moved(world: World, chosen: Callable[[Dimensions], bool], move: Move, part: float) -> World:
    """Move a part of the calls from the chosen places to a new version."""
    shares: dict[Dimensions, float] = {}
    for place, share in world.shares.items():
        went = part if chosen(place) else 0.0
        for one, its in ((place, share * (1 - went)), (move(place), share * went)):
            if its:
                shares[one] = shares.get(one, 0.0) + its
    return replace(world, moved=shares)


def _at_once(random: Random) -> timedelta:
    """A change is told when it begins, or some minutes before."""
    return timedelta(minutes=-random.uniform(0, 4))


def _nearly(random: Random) -> timedelta:
    """An innocent change: near the onset, before or after."""
    return timedelta(minutes=random.choice((-1, 1)) * random.uniform(0, 40))


def provider_outage(world: World, shape: TrafficShape, random: Random) -> Trouble:
    """Calls to one provider get no answer."""
    provider = random.choice(world.models)[0]
    kind = random.choice(SILENT)
    worse = _raised(world, {kind: shape.strength})
    return Trouble(
        world,
        Cause.PROVIDER_OUTAGE,
        provider,
        kind,
        provider=provider,
        worse=_where(world, lambda place: place.provider == provider, worse),
    )


def model(world: World, shape: TrafficShape, random: Random) -> Trouble:
    """One model answers worse, whatever it is asked with."""
    provider, name = random.choice(world.models)
    kind = random.choice(BAD_KINDS)
    worse = _raised(world, {kind: shape.strength})
    return Trouble(
        world,
        Cause.MODEL,
        f"{provider}/{name}",
        kind,
        (provider, name),
        provider,
        _where(world, lambda place: place.model == name, worse),
    )


def prompt(world: World, shape: TrafficShape, random: Random) -> Trouble:
    """A source gets a new prompt version, wholly or in part, and it is worse."""
    source = random.choice(world.sources)
    newest = PROMPTS[source][-1]
    stem, _, number = newest.rpartition("v")
    version = f"{stem}v{int(number) + 1}"
    kind = random.choice(BAD_KINDS[:3])
    moved = _moved(
        world,
        lambda place: place.source == source,
        lambda place: place._replace(prompt_version=version),
        shape.part,
    )
    worse = _raised(moved, {kind: shape.strength})
    return Trouble(
        moved,
        Cause.PROMPT,
        version,
        kind,
        worse=_where(moved, lambda place: place.prompt_version == version, worse),
        changes=(InjectedChange(_at_once(random), "prompt", version, source, "shorter"),),
    )


def schema(world: World, shape: TrafficShape, random: Random) -> Trouble:
    """A node asks for a new schema version, and answers do not meet it."""
    node = random.choice(world.nodes)
    moved = _moved(
        world,
        lambda place: place.node == node,
        lambda place: place._replace(schema_version="4"),
        shape.part,
    )
    worse = _raised(moved, {"schema_invalid": shape.strength})
    return Trouble(
        moved,
        Cause.SCHEMA,
        f"{SCHEMAS[node]} 4",
        "schema_invalid",
        worse=_where(moved, lambda place: place.schema_version == "4", worse),
        changes=(InjectedChange(_at_once(random), "schema", f"{SCHEMAS[node]} 4"),),
    )


def release(world: World, shape: TrafficShape, random: Random) -> Trouble:
    """A source is released, and its calls fail."""
    source = random.choice(world.sources)
    kind = random.choice(BAD_KINDS[:3])
    moved = _moved(
        world,
        lambda place: place.source == source,
        lambda place: place._replace(release=NEW_RELEASE),
        1.0,
    )
    worse = _raised(moved, {kind: shape.strength})
    return Trouble(
        moved,
        Cause.RELEASE,
        f"{source} {NEW_RELEASE}",
        kind,
        worse=_where(moved, lambda place: place.release == NEW_RELEASE, worse),
        changes=(InjectedChange(_at_once(random), "release", NEW_RELEASE, source),),
    )


def validator(world: World, shape: TrafficShape, random: Random) -> Trouble:
    """Answers of every model are refused for one reason: the fault is our own check."""
    kind = random.choice(("schema_invalid", "schema_invalid", "unknown_tool"))
    return Trouble(
        world,
        Cause.VALIDATOR,
        "",
        kind,
        worse=_raised(world, {kind: shape.strength}),
        changes=(InjectedChange(_at_once(random), "validator", "checks-12"),),
    )


def two_causes(world: World, shape: TrafficShape, random: Random) -> Trouble:
    """Two things at once: two models with two kinds, or a model and a source's release."""
    one, other = random.sample(world.models, 2)
    first, second = random.sample(BAD_KINDS[:4], 2)
    strength = max(shape.strength, 0.25)
    if random.random() < 0.5:
        touched, moved = _of_model(other), world
    else:
        source = random.choice(world.sources)
        moved = _moved(
            world,
            lambda place: place.source == source,
            lambda place: place._replace(release=NEW_RELEASE),
            1.0,
        )
        touched = _of_release(one)
    rest = _where(moved, touched, _raised(moved, {second: strength}))
    bad = _where(moved, _of_model(one), _raised(moved, {first: strength}))
    return Trouble(
        moved,
        Cause.MIXED,
        worse=lambda place: bad(place) if _of_model(one)(place) else rest(place),
    )


def _of_model(model_name: tuple[str, str]) -> Callable[[Dimensions], bool]:
    return lambda place: (place.provider, place.model) == model_name


def _of_release(but: tuple[str, str]) -> Callable[[Dimensions], bool]:
    return lambda place: place.release == NEW_RELEASE and place.model != but[1]


def mix_shift(world: World, _: TrafficShape, random: Random) -> Trouble:
    """More calls go to a model, or come from a source, that always was worse."""
    if random.random() < 0.7:
        field, value = "model", random.choice(world.models)[1]
    else:
        field, value = "source", random.choice(world.sources)
    worst = [place for place in world.shares if getattr(place, field) == value]
    factor = random.uniform(*WORSE_BY)
    usual = {place: scale_usual(world, place, factor) for place in worst}
    shares = {
        place: share * (4.0 if place in usual else 0.6) for place, share in world.shares.items()
    }
    total = sum(shares.values())
    moved = {place: share / total for place, share in shares.items()}
    return Trouble(replace(with_usual(world, usual), moved=moved), None)


def innocent_deploy(world: World, shape: TrafficShape, random: Random) -> Trouble:
    """One model got worse; near that moment something of ours was changed."""
    bad = model(world, shape, random)
    source = random.choice(world.sources)
    mark = InjectedChange(_nearly(random), "release", NEW_RELEASE, source)
    if random.random() < 0.3:
        return replace(bad, changes=(mark,))
    moved = _moved(
        world,
        lambda place: place.source == source,
        lambda place: place._replace(release=NEW_RELEASE),
        1.0,
    )
    kind = bad.top_kind
    worse = _where(
        moved,
        lambda place: (place.provider, place.model) == bad.model,
        _raised(moved, {kind: shape.strength}),
    )
    return replace(bad, world=moved, worse=worse, changes=(mark,), moved_after=mark.after)


def healthy(world: World, _: TrafficShape, random: Random) -> Trouble:
    """Nothing happens, besides a deploy now and then."""
    mark = InjectedChange(_nearly(random), "release", NEW_RELEASE, random.choice(world.sources))
    return Trouble(world, None, changes=(mark,) if random.random() < 0.5 else ())


KINDS: Mapping[str, Happen] = {
    "provider_outage": provider_outage,
    "model": model,
    "prompt": prompt,
    "schema": schema,
    "release": release,
    "validator": validator,
    "two_causes": two_causes,
    "mix_shift": mix_shift,
    "innocent_deploy": innocent_deploy,
    "healthy": healthy,
}
"""All kinds, by the names that `load_demo --incident` knows."""
