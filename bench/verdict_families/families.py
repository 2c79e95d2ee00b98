"""What happens to a project: families of stories, each from a sentence of docs/explainer.md.

A family changes a world after the onset and says which answers are right. Most are rows of
`families.toml`; what no row says is a function here. A lot divided them before any was run: half
were developed on, the others are run once (`--held-out`).
"""

# ruff: noqa: ANN401, S311 - rows of a file, seeded chance
import random
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from bench.verdict_families.worlds import KINDS, NOISES, Answer, Drawn, Stream, World

Family = Callable[[World], None]
Where = Callable[[Stream], bool]
Row = Mapping[str, Any]

TABLES = tomllib.loads(Path(__file__).with_name("families.toml").read_text(encoding="utf-8"))
VERSIONED = ("prompt", "schema", "release")
RATES = (0.15, 0.25, 0.4, 0.6, 0.9)
ANSWERS = {
    "": ["validator "],
    "provider": ["provider_outage {provider}"],
    "node": ["validator {node}"],
    "upstream": ["upstream {upstream}", "served {upstream}"],
    "credential": [
        "credential {credential}",
        "credential {source} with {provider}",
        "pair {source} with {provider}",
    ],
}
"""The right answers of dimensions whose causes have another name, or several."""


class Hit(NamedTuple):
    """A cause, as `families.toml` describes it."""

    where: str
    kind: str | Sequence[str] = ""
    rate: float | str = 0.0
    among: Mapping[str, int] = {}
    begins: float = 0.0
    share: float | Sequence[float] = 1.0
    answers: Sequence[str] = ()


def hits_of(row: Row) -> list[Hit]:
    return [Hit(*hit[:3], **dict(*hit[3:])) for hit in row.get("hits", ())]


def happen(world: World, row: Row) -> None:
    world.late = _any_of(world, row.get("late", world.late))
    world.noise = _any_of(world, row.get("noise", world.noise))
    world.tau = row.get("tau", min(world.tau, 0.3) if row.get("calm") else world.tau)
    world.abstain = row.get("abstain", False)
    taken: set[Answer] = set()
    for hit, where, answers in [(hit, *choose(world, hit, taken)) for hit in hits_of(row)]:
        if hit.kind:
            rise(world, hit, where, answers)


def choose(world: World, hit: Hit, taken: set[Answer]) -> tuple[Where, set[Answer]]:
    """Return which calls a cause hits, none that another has taken, and what it may be called."""
    values = {dimension: _value(world, hit, dimension, taken) for dimension in hit.where.split()}

    def where(stream: Stream) -> bool:
        return all(stream.get(dimension) == value for dimension, value in values.items())

    first = next(stream for stream in world.after if where(stream))
    names = {**dict(first.values), **values}
    templates = hit.answers or ANSWERS.get(hit.where, [f"{hit.where} {{{hit.where}}}"])
    words = (template.format_map(names).partition(" ") for template in templates)
    answers = {(cause, value) for cause, _, value in words}
    if hit.where == "provider":
        models = {stream.get("model") for stream in world.after if where(stream)}
        answers |= {("model", model) for model in models if len(models) == 1}
    return where, answers


def _value(world: World, hit: Hit, dimension: str, taken: set[Answer]) -> str:
    chosen = "source" if dimension in VERSIONED else dimension
    value = pick(world, chosen, among=hit.among.get(dimension, 3))
    while (dimension, value) in taken:
        value = pick(world, chosen, among=hit.among.get(dimension, 3))
    taken.add((dimension, value))
    if dimension not in VERSIONED:
        return value
    share = _any_of(world, hit.share)
    return renew(world, dimension, value, share, first=hit.begins * world.hours_after)


def rise(world: World, hit: Hit, where: Where, answers: set[Answer]) -> None:
    """Let calls fail as a cause says."""
    kind = _any_of(world, KINDS if hit.kind == "any" else hit.kind)
    world.rise(where, kind, _any_of(world, RATES if hit.rate == "any" else hit.rate), answers)


def _any_of(world: World, choice: Any) -> Any:
    """Return one of several values; a single one is not drawn."""
    return world.random.choice(choice) if isinstance(choice, (list, tuple)) else choice


FAMILIES: dict[str, Family] = {
    name: partial(happen, row=row) for name, row in TABLES["alone"].items()
}
SIZES: dict[str, Row] = dict(TABLES["alone"])


def family(**sizes: object) -> Callable[[Family], Family]:
    """Register a family, with the sizes that its worlds must have."""

    def keep(function: Family) -> Family:
        FAMILIES[function.__name__] = function
        SIZES[function.__name__] = sizes
        return function

    return keep


def make_world(draw: random.Random, sizes: Row) -> World:
    """Draw a project: providers with models, sources with prompts, environments, nodes."""
    models = sizes.get("models") or draw.choice((3, 4, 5, 6, 8))
    sources = sizes.get("sources") or draw.choice((2, 2, 3))
    nodes = sizes.get("nodes") or draw.choice((1, 2, 3))
    environments = sizes.get("environments") or draw.choice((1, 1, 2))
    regions = sizes.get("regions") or draw.choice((1, 1, 2))
    hosts = sizes.get("hosts") or 1
    total = draw.choice((30, 60, 120, 240, 480)) * sizes.get("volume", 1)
    providers = max(2 if models != 1 else 1, models // 2)
    common = draw.choice((0.005, 0.02, 0.04, 0.08))
    of_model = [draw.lognormvariate(0, 0.7) for _ in range(models)]
    of_source = [draw.lognormvariate(0, 0.5) for _ in range(sources)]
    rates = [min(0.3, common * draw.lognormvariate(0, 0.6)) for _ in of_model]
    kinds = [_mix(draw) for _ in of_model]
    places = product(*map(range, (models, sources, nodes, environments, regions, hosts)))
    streams: list[Stream] = []
    for m, s, n, e, r, h in places:
        values = {
            "provider": f"p{m % providers}",
            "model": f"p{m % providers}/m{m}",
            "source": f"s{s}",
            "node": f"n{n}",
            "environment": f"e{e}",
            "region": f"r{r}" if regions > 1 else "",
            "prompt": f"s{s}-v1",
            "schema": f"s{s}-sch1",
            "release": f"s{s}-1.0",
            "served": f"m{m}",
            "upstream": f"h{h}" if hosts > 1 else "",
            "credential": f"k{s}p{m % providers}",
        }
        rate = min(0.3, rates[m] * draw.lognormvariate(0, 0.2))
        weight = of_model[m] * of_source[s] * draw.uniform(0.4, 1) * (1.0 if e == 0 else 0.35)
        streams.append(Stream(tuple(sorted(values.items())), weight, rate, kinds[m]))
    scale = total / sum(stream.per_hour for stream in streams)
    before = [replace(stream, per_hour=scale * stream.per_hour) for stream in streams]
    return World(
        random=draw,
        before=before,
        after=list(before),
        hours_before=draw.choice((24, 72, 120)),
        hours_after=draw.choice((0.7, 1.5, 3, 6, 12)),
        noise=draw.choice(NOISES),
        tau=draw.choice((0, 0.3, 0.6)),
    )


def make_stories(names: Sequence[str], each: int, seed: int) -> Iterator[Drawn]:
    """Draw stories of each family."""
    for name in names:
        for number in range(each):
            world = make_world(random.Random(f"{name} {seed} {number}"), SIZES[name])
            FAMILIES[name](world)
            yield world.draw(name, number)


def _mix(draw: random.Random) -> dict[str, float]:
    chosen = draw.sample(KINDS, 3)
    return {chosen[0]: 0.6, chosen[1]: 0.3, chosen[2]: 0.1}


def by_calls(world: World, dimension: str) -> list[str]:
    """Return the values of a dimension, the most called first."""
    volume: dict[str, float] = {}
    for stream in world.after:
        value = stream.get(dimension)
        volume[value] = volume.get(value, 0) + stream.per_hour
    return sorted(volume, key=lambda value: -volume[value])


def pick(world: World, dimension: str, *, among: int = 3) -> str:
    """Return a value, one of the most called."""
    return world.random.choice(by_calls(world, dimension)[:among])


def has(dimension: str, value: str) -> Where:
    return lambda stream: stream.get(dimension) == value


def move(world: World, where: Where, share: float, **values: str) -> None:
    """Let a share of some calls have other values."""
    kept = []
    for stream in world.after:
        part = share if where(stream) else 0.0
        if part < 1:
            kept.append(replace(stream, per_hour=stream.per_hour * (1 - part)))
        if part:
            kept.append(replace(stream.with_values(**values), per_hour=stream.per_hour * part))
    world.after = kept


def renew(world: World, dimension: str, source: str, share: float = 1.0, first: float = 0.0) -> str:
    """Let a source call with a new version, wholly or in part."""
    new = f"{source}-{dimension}-new"
    move(world, has("source", source), share, **{dimension: new})
    world.add_new(dimension, new, first=first, told=world.random.random() < 0.5)
    return new


@family()
def prompt_old_comes_back(world: World) -> None:
    source = pick(world, "source")
    old = f"{source}-v0"
    world.before += [
        replace(s.with_values(prompt=old), per_hour=s.per_hour * 0.04)
        for s in list(world.before)
        if s.get("source") == source
    ]
    world.change(has("source", source), lambda s: s.with_values(prompt=old))
    world.rise(has("prompt", old), "not_json", 0.4, {("prompt", old)})


# "If a release introduces a new prompt, the prompt is named, unless only the release was reported"
@family()
def release_brings_prompt(world: World) -> None:
    source = pick(world, "source")
    prompt, release = renew(world, "prompt", source), renew(world, "release", source)
    answers = {("prompt", prompt), ("release", release)}
    rise(world, Hit("release", "not_json", "any"), has("release", release), answers)


@family()
def served_by_fallback(world: World) -> None:
    model = pick(world, "model", among=2)
    share = world.random.choice((0.3, 0.6, 1.0))
    move(world, has("model", model), share, served="fallback")
    world.add_new("served", "fallback", told=False)
    answers = {("served", "fallback")} | ({("model", model)} if share == 1 else set())
    world.rise(has("served", "fallback"), "not_json", 0.45, answers)


@family()
def upstream_new(world: World) -> None:
    move(world, has("model", pick(world, "model", among=2)), 0.5, upstream="cheap")
    world.add_new("upstream", "cheap", told=False)
    answers = {("upstream", "cheap"), ("served", "cheap")}
    world.rise(has("upstream", "cheap"), "not_json", 0.4, answers)


@family(models=6)
def two_models(world: World) -> None:
    world.random.sample(range(6), 6)  # so that the stories stay those of earlier figures
    for name, kind in zip(by_calls(world, "model"), ("not_json", "refusal"), strict=False):
        world.rise(has("model", name), kind, 0.5, {("model", name)})


@family(sources=3)
def two_sources(world: World) -> None:
    sources = sorted(by_calls(world, "source"))
    world.random.shuffle(sources)
    for name, kind in zip(sources, ("truncated", "schema_invalid"), strict=False):
        world.rise(has("source", name), kind, 0.4, {("source", name)})


@family(healthy=True)
def healthy_mix_shift(world: World) -> None:
    model = pick(world, "model")
    world.change(has("model", model), lambda s: replace(s, rate=min(0.3, s.rate * 4)))
    world.before = list(world.after)
    factor = world.random.choice((3, 5))
    world.change(has("model", model), lambda s: replace(s, per_hour=s.per_hour * factor))


@family(healthy=True)
def healthy_deploy(world: World) -> None:
    renew(world, world.random.choice(("prompt", "release", "schema")), pick(world, "source"))


@family(healthy=True)
def healthy_new_model(world: World) -> None:
    _add_model(world, 0.6, (0.7, 1, 1.3))


@family(healthy=True)
def healthy_busy_hour(world: World) -> None:
    factor = world.random.choice((0.3, 2, 4))
    world.change(lambda s: True, lambda s: replace(s, per_hour=s.per_hour * factor))


@family(models=1, sources=1)
def one_model_new_prompt(world: World) -> None:
    new = renew(world, "prompt", "s0")
    world.rise(lambda s: True, "schema_invalid", 0.4, {("prompt", new)})
    world.abstain = True


# "A version that started clearly before the onset is blamed only if ... a gradual rollout"
@family()
def old_canary_beside_model(world: World) -> None:
    source = pick(world, "source")
    new = f"{source}-prompt-new"
    split = []
    for s in world.before:
        split.append(s)
        if s.get("source") == source:
            split.append(replace(s.with_values(prompt=new), per_hour=s.per_hour * 0.3))
    world.before, world.after = list(split), list(split)
    world.add_new("prompt", new, first=-30.0, told=True)
    model = pick(world, "model", among=2)
    world.rise(has("model", model), "not_json", 0.5, {("model", model)})


# A new model that fails from its first call.
@family()
def new_model_fails(world: World) -> None:
    new = _add_model(world, 0.8)
    world.rise(has("model", new), "not_json", 0.5, {("model", new)})


def _add_model(world: World, share: float, rates: float | Sequence[float] = 1) -> str:
    """Let a new model be called beside another, a share as often."""
    model, new = pick(world, "model"), "p0/brand-new"
    world.after += [
        replace(
            s.with_values(model=new, served="brand-new", provider="p0"),
            rate=s.rate * _any_of(world, rates),
            per_hour=s.per_hour * share,
        )
        for s in world.after
        if s.get("model") == model
    ]
    world.add_new("model", new, told=False)
    return new


# A shift of traffic and a fault together.
@family()
def model_fails_while_traffic_moves(world: World) -> None:
    name = pick(world, "model", among=2)
    factor = world.random.choice((0.5, 3))
    source = pick(world, "source")
    world.change(has("source", source), lambda s: replace(s, per_hour=s.per_hour * factor))
    world.rise(has("model", name), "refusal", 0.5, {("model", name)})


# Several kinds rise together.
@family()
def model_fails_in_two_ways(world: World) -> None:
    name = pick(world, "model")
    world.rise(has("model", name), "not_json", 0.3, {("model", name)})
    world.truths.pop(), world.hit.pop()
    world.rise(has("model", name), "truncated", 0.5, {("model", name)})


_LOT = random.Random("families of docs/verdict.md").sample(sorted(FAMILIES), len(FAMILIES))
DEVELOPMENT = tuple(sorted(_LOT[::2]))
HELD_OUT = tuple(sorted(_LOT[1::2]))
