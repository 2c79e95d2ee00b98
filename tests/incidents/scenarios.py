"""Incident scenarios, one function per kind: what changes, and the expected verdict."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from agents.goals.state import SCHEMA_OF_NODE
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.cells import Dimensions
from tests.incidents.traffic_model import SILENT, WORLD, Rates, TrafficShape, World, as_shares

BAD_KINDS = ("truncated", "schema_invalid", "not_json", "refusal", "empty_output")
NEW_RELEASE = WORLD["new_release"]
WORSE_BY = (2.5, 4.0)

RatesByPlace = Callable[[Dimensions], Rates]


@dataclass(frozen=True, slots=True)
class InjectedChange:
    """A change and its time relative to the onset."""

    after: timedelta
    kind: str
    version: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class InjectedIncident:
    """An incident: the world after it, which calls fail how, and the expected verdict."""

    world: World
    cause: Cause | None
    value: str = ""
    top_kind: str = ""
    model: tuple[str, str] | None = None
    provider: str | None = None
    worse: RatesByPlace | None = None
    changes: tuple[InjectedChange, ...] = ()
    moved_after: timedelta = timedelta(0)
    """When calls move to `world.moved`, relative to the onset."""


ScenarioFunction = Callable[[World, TrafficShape, Random], InjectedIncident]


def _raise_rate(rates: RatesByPlace, kind: str, more: float, **where: str) -> RatesByPlace:
    """Return rates with more of a kind of failure where the dimensions match, or everywhere."""

    def worse(place: Dimensions) -> Rates:
        usual = rates(place)
        if any(getattr(place, name) != value for name, value in where.items()):
            return usual
        return {**usual, kind: usual.get(kind, 0.0) + more}

    return worse


def _move_calls(world: World, name: str, value: str, part: float = 1.0, **version: str) -> World:
    """Move a part of the calls whose dimension has a value to a new version."""
    shares: dict[Dimensions, float] = {}
    for place, share in world.shares.items():
        moved_part = part if getattr(place, name) == value else 0.0
        for at, moved_share in (
            (place, share * (1 - moved_part)),
            (place._replace(**version), share * moved_part),
        ):
            if moved_share:
                shares[at] = shares.get(at, 0.0) + moved_share
    return replace(world, moved=shares)


def _at_onset(random: Random) -> timedelta:
    """A change is reported at the onset, or some minutes before."""
    return timedelta(minutes=-random.uniform(0, 4))


def _unrelated_release(random: Random, source: str | None = None) -> InjectedChange:
    """Return a release that is not the cause: near the onset, before or after."""
    after = timedelta(minutes=random.choice((-1, 1)) * random.uniform(0, 40))
    return InjectedChange(after, "release", NEW_RELEASE, source)


def provider_outage(world: World, shape: TrafficShape, random: Random) -> InjectedIncident:
    """Calls to one provider get no answer."""
    provider = random.choice(world.models)[0]
    kind = random.choice(SILENT)
    worse = _raise_rate(world.rates, kind, shape.strength, provider=provider)
    return InjectedIncident(
        world, Cause.PROVIDER_OUTAGE, provider, kind, provider=provider, worse=worse
    )


def model(world: World, shape: TrafficShape, random: Random) -> InjectedIncident:
    """One model fails more, whatever the prompt."""
    provider, name = random.choice(world.models)
    kind = random.choice(BAD_KINDS)
    worse = _raise_rate(world.rates, kind, shape.strength, model=name)
    value = f"{provider}/{name}"
    return InjectedIncident(world, Cause.MODEL, value, kind, (provider, name), provider, worse)


def prompt(world: World, shape: TrafficShape, random: Random) -> InjectedIncident:
    """A source gets a new prompt version for all or a part of its calls, and it is worse."""
    source = random.choice(world.sources)
    stem, _, number = WORLD["prompts"][source][-1].rpartition("v")
    version = f"{stem}v{int(number) + 1}"
    kind = random.choice(BAD_KINDS[:3])
    moved = _move_calls(world, "source", source, shape.part, prompt_version=version)
    worse = _raise_rate(moved.rates, kind, shape.strength, prompt_version=version)
    change = InjectedChange(_at_onset(random), "prompt", version, source)
    return InjectedIncident(moved, Cause.PROMPT, version, kind, worse=worse, changes=(change,))


def schema(world: World, shape: TrafficShape, random: Random) -> InjectedIncident:
    """A node requires a new schema version, and answers do not match it."""
    node, kind = random.choice(world.nodes), "schema_invalid"
    version = f"{SCHEMA_OF_NODE[node]} 4"
    moved = _move_calls(world, "node", node, shape.part, schema_version="4")
    worse = _raise_rate(moved.rates, kind, shape.strength, schema_version="4")
    change = InjectedChange(_at_onset(random), "schema", version)
    return InjectedIncident(moved, Cause.SCHEMA, version, kind, worse=worse, changes=(change,))


def release(world: World, shape: TrafficShape, random: Random) -> InjectedIncident:
    """A source is released, and its calls fail."""
    source = random.choice(world.sources)
    kind = random.choice(BAD_KINDS[:3])
    moved = _move_calls(world, "source", source, release=NEW_RELEASE)
    worse = _raise_rate(moved.rates, kind, shape.strength, release=NEW_RELEASE)
    change = InjectedChange(_at_onset(random), "release", NEW_RELEASE, source)
    value = f"{source} {NEW_RELEASE}"
    return InjectedIncident(moved, Cause.RELEASE, value, kind, worse=worse, changes=(change,))


def validator(world: World, shape: TrafficShape, random: Random) -> InjectedIncident:
    """Answers of every model are refused for one reason: our own validator is at fault."""
    kind = random.choice(("schema_invalid", "schema_invalid", "unknown_tool"))
    worse = _raise_rate(world.rates, kind, shape.strength)
    change = InjectedChange(_at_onset(random), "validator", "checks-12")
    return InjectedIncident(world, Cause.VALIDATOR, "", kind, worse=worse, changes=(change,))


def two_causes(world: World, shape: TrafficShape, random: Random) -> InjectedIncident:
    """Two causes at once: two models with two kinds, or a model and a source's release."""
    (provider, name), (other_provider, other) = random.sample(world.models, 2)
    first, second = random.sample(BAD_KINDS[:4], 2)
    strength = max(shape.strength, 0.25)
    if random.random() < 0.5:
        moved = world
        rest = _raise_rate(world.rates, second, strength, provider=other_provider, model=other)
    else:
        moved = _move_calls(world, "source", random.choice(world.sources), release=NEW_RELEASE)
        rest = _raise_rate(moved.rates, second, strength, release=NEW_RELEASE)
    bad = _raise_rate(moved.rates, first, strength)
    return InjectedIncident(
        moved,
        Cause.MIXED,
        worse=lambda p: (bad if (p.provider, p.model) == (provider, name) else rest)(p),
    )


def mix_shift(world: World, _: TrafficShape, random: Random) -> InjectedIncident:
    """More calls go to a model, or come from a source, that was always worse."""
    if random.random() < 0.7:
        field, value = "model", random.choice(world.models)[1]
    else:
        field, value = "source", random.choice(world.sources)
    worst = {place for place in world.shares if getattr(place, field) == value}
    factor = random.uniform(*WORSE_BY)
    usual = {
        place: {kind: share * factor for kind, share in world.rates(place).items()}
        for place in worst
    }
    moved = as_shares(
        {p: share * (4.0 if p in worst else 0.6) for p, share in world.shares.items()}
    )
    return InjectedIncident(replace(world, usual={**world.usual, **usual}, moved=moved), None)


def innocent_deploy(world: World, shape: TrafficShape, random: Random) -> InjectedIncident:
    """One model got worse; near that moment a release was deployed."""
    bad = model(world, shape, random)
    source = random.choice(world.sources)
    mark = _unrelated_release(random, source)
    if random.random() < 0.3:
        return replace(bad, changes=(mark,))
    moved = _move_calls(world, "source", source, release=NEW_RELEASE)
    provider, name = bad.model or ("", "")
    worse = _raise_rate(moved.rates, bad.top_kind, shape.strength, provider=provider, model=name)
    return replace(bad, world=moved, worse=worse, changes=(mark,), moved_after=mark.after)


def healthy(world: World, _: TrafficShape, random: Random) -> InjectedIncident:
    """Nothing happens, except for an occasional deploy."""
    mark = replace(_unrelated_release(random), source=random.choice(world.sources))
    return InjectedIncident(world, None, changes=(mark,) if random.random() < 0.5 else ())


KINDS: Mapping[str, ScenarioFunction] = {
    happen.__name__: happen
    for happen in (
        provider_outage,
        model,
        prompt,
        schema,
        release,
        validator,
        two_causes,
        mix_shift,
        innocent_deploy,
        healthy,
    )
}
"""All kinds, by their names."""
