"""What happens to a project: one function a family, each from a sentence of docs/verdict.md.

A family changes a world after the onset and says which answers are right. Half of the families
were developed on; the others are run once (`--held-out`).
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from bench.verdict_families.worlds import KINDS, NO_ANSWER, NOISES, Drawn, Stream, World

Family = Callable[[World], None]

FAMILIES: dict[str, Family] = {}
SIZES: dict[str, dict[str, object]] = {}


def family(**sizes: object) -> Callable[[Family], Family]:
    """Register a family, with the sizes that its worlds must have."""

    def keep(function: Family) -> Family:
        FAMILIES[function.__name__] = function
        SIZES[function.__name__] = sizes
        return function

    return keep


def make_world(draw: random.Random, sizes: dict[str, object]) -> World:
    """Draw a project: providers with models, sources with prompts, environments, nodes."""
    models = sizes.get("models") or draw.choice((3, 4, 5, 6, 8))
    sources = sizes.get("sources") or draw.choice((2, 2, 3))
    nodes = sizes.get("nodes") or draw.choice((1, 2, 3))
    environments = sizes.get("environments") or draw.choice((1, 1, 2))
    regions = sizes.get("regions") or draw.choice((1, 1, 2))
    hosts = sizes.get("hosts") or 1
    total = draw.choice((30, 60, 120, 240, 480)) * float(str(sizes.get("volume", 1)))
    providers = max(2 if models != 1 else 1, int(str(models)) // 2)
    common = draw.choice((0.005, 0.02, 0.04, 0.08))
    streams: list[Stream] = []
    weights: list[float] = []
    of_model = [draw.lognormvariate(0, 0.7) for _ in range(int(str(models)))]
    of_source = [draw.lognormvariate(0, 0.5) for _ in range(int(str(sources)))]
    rates = [min(0.3, common * draw.lognormvariate(0, 0.6)) for _ in of_model]
    kinds = [_mix(draw) for _ in of_model]
    for m, weight in enumerate(of_model):
        for s, share in enumerate(of_source):
            for n in range(int(str(nodes))):
                for e in range(int(str(environments))):
                    for r in range(int(str(regions))):
                        for h in range(int(str(hosts))):
                            values = {
                                "provider": f"p{m % providers}",
                                "model": f"p{m % providers}/m{m}",
                                "source": f"s{s}",
                                "node": f"n{n}",
                                "environment": f"e{e}",
                                "region": f"r{r}" if int(str(regions)) > 1 else "",
                                "prompt": f"s{s}-v1",
                                "schema": f"s{s}-sch1",
                                "release": f"s{s}-1.0",
                                "served": f"m{m}",
                                "upstream": f"h{h}" if int(str(hosts)) > 1 else "",
                                "credential": f"k{s}p{m % providers}",
                            }
                            streams.append(
                                Stream(
                                    tuple(sorted(values.items())),
                                    0.0,
                                    min(0.3, rates[m] * draw.lognormvariate(0, 0.2)),
                                    kinds[m],
                                )
                            )
                            weights.append(
                                weight * share * draw.uniform(0.4, 1) * (1.0 if e == 0 else 0.35)
                            )
    scale = total / sum(weights)
    before = [
        replace(stream, per_hour=scale * weight)
        for stream, weight in zip(streams, weights, strict=True)
    ]
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
            draw = random.Random(f"{name} {seed} {number}")  # noqa: S311 - a benchmark
            world = make_world(draw, SIZES[name])
            FAMILIES[name](world)
            yield world.draw(name, number)


def _mix(draw: random.Random) -> dict[str, float]:
    chosen = draw.sample(KINDS, 3)
    return {chosen[0]: 0.6, chosen[1]: 0.3, chosen[2]: 0.1}


def pick(world: World, dimension: str, *, among: int = 3) -> str:
    """Return a value, one of the most called."""
    volume: dict[str, float] = {}
    for stream in world.after:
        value = stream.get(dimension)
        volume[value] = volume.get(value, 0) + stream.per_hour
    return world.random.choice(sorted(volume, key=lambda value: -volume[value])[:among])


def has(dimension: str, value: str) -> Callable[[Stream], bool]:
    return lambda stream: stream.get(dimension) == value


def _rate(world: World) -> float:
    return world.random.choice((0.15, 0.25, 0.4, 0.6, 0.9))


def renew(world: World, dimension: str, source: str, share: float = 1.0, first: float = 0.0) -> str:
    """Let a source call with a new version, wholly or in part."""
    new = f"{source}-{dimension}-new"
    kept = []
    for stream in world.after:
        if stream.get("source") != source:
            kept.append(stream)
            continue
        if share < 1:
            kept.append(replace(stream, per_hour=stream.per_hour * (1 - share)))
        kept.append(
            replace(stream.with_values(**{dimension: new}), per_hour=stream.per_hour * share)
        )
    world.after = kept
    world.add_new(dimension, new, first=first, told=world.random.random() < 0.5)
    return new


# Outages: "calls to one provider return no answer, for all of its models alike".
@family(models=6)
def provider_outage(world: World) -> None:
    name = pick(world, "provider")
    world.tau = 0.2
    world.rise(has("provider", name), "call_provider_error", 0.9, {("provider_outage", name)})


@family(models=8)
def provider_timeouts_in_part(world: World) -> None:
    name = pick(world, "provider")
    world.rise(has("provider", name), "call_timeout", 0.35, {("provider_outage", name)})


@family(models=6)
def provider_quota(world: World) -> None:
    name = pick(world, "provider")
    world.rise(has("provider", name), "call_rate_limited", 0.5, {("provider_outage", name)})


# "one model fails more often, with versions that were healthy before"
@family()
def model_answers_badly(world: World) -> None:
    name = pick(world, "model")
    world.rise(has("model", name), "not_json", _rate(world), {("model", name)})


@family()
def model_refuses(world: World) -> None:
    name = pick(world, "model")
    world.rise(has("model", name), "refusal", _rate(world), {("model", name)})


@family(models=6)
def model_times_out(world: World) -> None:
    name = pick(world, "model")
    world.rise(has("model", name), "call_timeout", _rate(world), {("model", name)})


# "A model can be blamed for one node alone"
@family(nodes=3)
def model_at_one_node(world: World) -> None:
    name, node = pick(world, "model"), pick(world, "node")
    world.rise(
        lambda s: s.get("model") == name and s.get("node") == node,
        "truncated",
        0.6,
        {("model", name), ("pair", f"{node} with {name}"), ("pair", f"{name} with {node}")},
    )


# "the version is new, and calls without it are within baseline"
@family()
def prompt_new(world: World) -> None:
    source = pick(world, "source")
    new = renew(world, "prompt", source)
    answers = {("prompt", new)}
    world.rise(has("prompt", new), world.random.choice(KINDS), _rate(world), answers)


@family()
def prompt_canary(world: World) -> None:
    new = renew(world, "prompt", pick(world, "source"), share=world.random.choice((0.1, 0.2, 0.5)))
    world.rise(has("prompt", new), "schema_invalid", 0.5, {("prompt", new)})


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


@family()
def schema_new(world: World) -> None:
    new = renew(world, "schema", pick(world, "source"))
    world.rise(has("schema", new), "schema_invalid", _rate(world), {("schema", new)})


@family()
def release_new(world: World) -> None:
    new = renew(world, "release", pick(world, "source"))
    world.rise(has("release", new), "truncated", _rate(world), {("release", new)})


# "If a release introduces a new prompt, the prompt is named, unless only the release was reported"
@family()
def release_brings_prompt(world: World) -> None:
    source = pick(world, "source")
    prompt = renew(world, "prompt", source)
    release = renew(world, "release", source)
    world.rise(
        has("release", release),
        "not_json",
        _rate(world),
        {("prompt", prompt), ("release", release)},
    )


@family()
def release_rolled_out_in_part(world: World) -> None:
    new = renew(world, "release", pick(world, "source"), share=0.5)
    world.rise(has("release", new), "empty_output", 0.4, {("release", new)})


# "calls from one source fail more often, with all of its models and no new version"
@family(sources=3)
def source_sends_harder_goals(world: World) -> None:
    name = pick(world, "source")
    world.rise(has("source", name), "schema_invalid", _rate(world), {("source", name)})


@family(sources=3)
def source_budget_cut(world: World) -> None:
    name = pick(world, "source")
    world.rise(has("source", name), "truncated", 0.5, {("source", name)})


# "a new version, or a source, fails with one model only"
@family()
def pair_of_prompt_and_model(world: World) -> None:
    new, model = renew(world, "prompt", pick(world, "source")), pick(world, "model", among=2)
    world.rise(
        lambda s: s.get("prompt") == new and s.get("model") == model,
        "not_json",
        0.6,
        {("pair", f"{new} with {model}")},
    )


@family(sources=3)
def pair_of_source_and_model(world: World) -> None:
    source, model = pick(world, "source"), pick(world, "model", among=2)
    world.rise(
        lambda s: s.get("source") == source and s.get("model") == model,
        "truncated",
        0.6,
        {("pair", f"{source} with {model}")},
    )


# "calls answered by a different model or host than before, such as a gateway's fallback"
@family()
def served_by_fallback(world: World) -> None:
    model = pick(world, "model", among=2)
    share = world.random.choice((0.3, 0.6, 1.0))
    kept = []
    for s in world.after:
        if s.get("model") == model:
            if share < 1:
                kept.append(replace(s, per_hour=s.per_hour * (1 - share)))
            kept.append(replace(s.with_values(served="fallback"), per_hour=s.per_hour * share))
        else:
            kept.append(s)
    world.after = kept
    world.add_new("served", "fallback", told=False)
    answers = {("served", "fallback")} | ({("model", model)} if share == 1 else set())
    world.rise(has("served", "fallback"), "not_json", 0.45, answers)


@family(hosts=3)
def upstream_gone_bad(world: World) -> None:
    model, host = pick(world, "model", among=2), pick(world, "upstream")
    world.rise(
        lambda s: s.get("model") == model and s.get("upstream") == host,
        "empty_output",
        0.5,
        {
            ("upstream", host),
            ("served", host),
            ("pair", f"{host} with {model}"),
            ("pair", f"{model} with {host}"),
        },
    )


@family(hosts=3)
def upstream_bad_for_all_models(world: World) -> None:
    host = pick(world, "upstream")
    world.rise(
        has("upstream", host), "call_provider_error", 0.5, {("upstream", host), ("served", host)}
    )


@family()
def upstream_new(world: World) -> None:
    model = pick(world, "model", among=2)
    kept = []
    for s in world.after:
        if s.get("model") == model:
            kept.append(replace(s, per_hour=s.per_hour * 0.5))
            kept.append(replace(s.with_values(upstream="cheap"), per_hour=s.per_hour * 0.5))
        else:
            kept.append(s)
    world.after = kept
    world.add_new("upstream", "cheap", told=False)
    world.rise(
        has("upstream", "cheap"), "not_json", 0.4, {("upstream", "cheap"), ("served", "cheap")}
    )


# "every model fails more often, in the same way, and nothing is new"
@family(sources=3)
def validator_everywhere(world: World) -> None:
    world.tau = min(world.tau, 0.3)
    world.rise(lambda s: True, "schema_invalid", 0.35, {("validator", "")})


@family(nodes=3)
def validator_at_one_node(world: World) -> None:
    node = pick(world, "node")
    world.tau = min(world.tau, 0.3)
    world.rise(has("node", node), "schema_invalid", 0.4, {("validator", node)})


@family()
def network_everywhere(world: World) -> None:
    world.rise(lambda s: True, "call_timeout", 0.5, {("validator", ""), ("environment", "")})


@family(environments=3)
def environment_fails(world: World) -> None:
    name = pick(world, "environment", among=2)
    kind = world.random.choice((*NO_ANSWER, "schema_invalid"))
    world.rise(has("environment", name), kind, 0.5, {("environment", name)})


@family(regions=3)
def region_fails(world: World) -> None:
    name = pick(world, "region")
    world.rise(has("region", name), "call_timeout", 0.5, {("region", name)})


@family(regions=2, models=5)
def region_of_one_provider(world: World) -> None:
    provider, region = pick(world, "provider"), pick(world, "region")
    world.rise(
        lambda s: s.get("provider") == provider and s.get("region") == region,
        "call_provider_error",
        0.7,
        {
            ("pair", f"{provider} with {region}"),
            ("pair", f"{region} with {provider}"),
            ("region", region),
            ("upstream", region),
        },
    )


# a revoked key: one source at one provider, one kind
@family(sources=3)
def credential_revoked(world: World) -> None:
    key = pick(world, "credential", among=4)
    where = next(s for s in world.after if s.get("credential") == key)
    source, provider = where.get("source"), where.get("provider")
    world.tau = 0.2
    world.rise(
        has("credential", key),
        "call_other",
        0.95,
        {
            ("credential", key),
            ("credential", f"{source} with {provider}"),
            ("pair", f"{source} with {provider}"),
            ("credential", f"{source} at {provider}"),
        },
    )


@family(sources=3)
def quota_of_one_credential(world: World) -> None:
    key = pick(world, "credential", among=4)
    where = next(s for s in world.after if s.get("credential") == key)
    source, provider = where.get("source"), where.get("provider")
    world.rise(
        has("credential", key),
        "call_rate_limited",
        0.4,
        {
            ("credential", key),
            ("pair", f"{source} with {provider}"),
            ("credential", f"{source} with {provider}"),
            ("credential", f"{source} at {provider}"),
        },
    )


# "two simultaneous causes are two entries"
@family(models=6)
def two_models(world: World) -> None:
    names = world.random.sample(sorted({s.get("model") for s in world.after}), 6)
    names.sort(key=lambda n: -sum(s.per_hour for s in world.after if s.get("model") == n))
    for name, kind in zip(names[:2], ("not_json", "refusal"), strict=True):
        world.rise(has("model", name), kind, 0.5, {("model", name)})


@family(sources=3)
def prompt_and_model(world: World) -> None:
    source = pick(world, "source")
    new = renew(world, "prompt", source)
    model = pick(world, "model", among=2)
    world.rise(has("prompt", new), "schema_invalid", 0.4, {("prompt", new)})
    world.rise(has("model", model), "refusal", 0.6, {("model", model)})


@family(models=6, sources=3)
def provider_and_release(world: World) -> None:
    new = renew(world, "release", pick(world, "source"))
    name = pick(world, "provider")
    world.rise(has("release", new), "truncated", 0.4, {("release", new)})
    world.rise(has("provider", name), "call_provider_error", 0.7, {("provider_outage", name)})


@family(sources=3)
def two_sources(world: World) -> None:
    sources = sorted({s.get("source") for s in world.after})
    world.random.shuffle(sources)
    for name, kind in zip(sources[:2], ("truncated", "schema_invalid"), strict=True):
        world.rise(has("source", name), kind, 0.4, {("source", name)})


# healthy windows
@family(healthy=True)
def healthy_calm(world: World) -> None:
    world.noise = 0.0


@family(healthy=True)
def healthy_restless(world: World) -> None:
    world.noise = world.random.choice((0.15, 0.4))


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
    model = pick(world, "model")
    added = [
        replace(
            s.with_values(model="p0/brand-new", served="brand-new", provider="p0"),
            rate=s.rate * world.random.choice((0.7, 1, 1.3)),
            per_hour=s.per_hour * 0.6,
        )
        for s in world.after
        if s.get("model") == model
    ]
    world.after += added
    world.add_new("model", "p0/brand-new", told=False)


@family(healthy=True)
def healthy_busy_hour(world: World) -> None:
    factor = world.random.choice((0.3, 2, 4))
    world.change(lambda s: True, lambda s: replace(s, per_hour=s.per_hour * factor))


# "A deploy that happens to coincide is ruled out if calls without it fail just as often"
@family()
def innocent_release_beside_model(world: World) -> None:
    renew(world, "release", pick(world, "source"))
    model = pick(world, "model", among=2)
    world.rise(has("model", model), "not_json", 0.5, {("model", model)})


@family()
def innocent_prompt_beside_outage(world: World) -> None:
    renew(world, "prompt", pick(world, "source"))
    name = pick(world, "provider")
    world.rise(
        has("provider", name),
        "call_provider_error",
        0.7,
        {("provider_outage", name)} | _single_model(world, name),
    )


def _single_model(world: World, provider: str) -> set[tuple[str, str]]:
    models = {s.get("model") for s in world.after if s.get("provider") == provider}
    return {("model", name) for name in models} if len(models) == 1 else set()


# "If only one model is called at all ... otherwise the cause is mixed"
@family(models=1, sources=1, environments=1, regions=1, nodes=1)
def one_model_nothing_new(world: World) -> None:
    world.rise(lambda s: True, "not_json", 0.4, {("model", "p0/m0"), ("validator", "")})
    world.abstain = True


@family(models=1, sources=1)
def one_model_new_prompt(world: World) -> None:
    new = renew(world, "prompt", "s0")
    world.rise(lambda s: True, "schema_invalid", 0.4, {("prompt", new)})
    world.abstain = True


@family(models=1, sources=3)
def one_model_one_source_bad(world: World) -> None:
    name = pick(world, "source")
    world.rise(has("source", name), "truncated", 0.5, {("source", name)})


# little data, a late onset, growth
@family(volume=0.2)
def model_with_few_calls(world: World) -> None:
    name = pick(world, "model")
    world.rise(has("model", name), "not_json", 0.6, {("model", name)})
    world.abstain = True


@family()
def model_told_late(world: World) -> None:
    world.late = world.random.choice((0.1, 0.3))
    name = pick(world, "model")
    world.rise(has("model", name), "truncated", 0.5, {("model", name)})


@family()
def release_told_late(world: World) -> None:
    world.late = world.random.choice((0.1, 0.3))
    new = renew(world, "release", pick(world, "source"))
    world.rise(has("release", new), "truncated", 0.5, {("release", new)})


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


# a new model that fails from its first call
@family()
def new_model_fails(world: World) -> None:
    model = pick(world, "model")
    added = [
        replace(
            s.with_values(model="p0/brand-new", served="brand-new", provider="p0"),
            per_hour=s.per_hour * 0.8,
        )
        for s in world.after
        if s.get("model") == model
    ]
    world.after += added
    world.add_new("model", "p0/brand-new", told=False)
    world.rise(has("model", "p0/brand-new"), "not_json", 0.5, {("model", "p0/brand-new")})


# a shift of traffic and a fault together
@family()
def model_fails_while_traffic_moves(world: World) -> None:
    name = pick(world, "model", among=2)
    factor = world.random.choice((0.5, 3))
    source = pick(world, "source")
    world.change(has("source", source), lambda s: replace(s, per_hour=s.per_hour * factor))
    world.rise(has("model", name), "refusal", 0.5, {("model", name)})


# several kinds rise together
@family()
def model_fails_in_two_ways(world: World) -> None:
    name = pick(world, "model", among=3)
    world.rise(has("model", name), "not_json", 0.3, {("model", name)})
    world.truths.pop(), world.hit.pop()
    world.rise(has("model", name), "truncated", 0.5, {("model", name)})


@family()
def retired_model(world: World) -> None:
    name = pick(world, "model", among=3)
    world.tau = 0.0
    world.rise(has("model", name), "call_other", 0.97, {("model", name)})
