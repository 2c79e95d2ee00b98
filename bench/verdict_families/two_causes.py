"""Families with two causes of differing kinds: at once, or one hours after the other.

Written before any was run. Of each story both causes make at least `LEAST_HIT` calls fail that
would have gone well. Half were developed on, the others are run once (`--held-out`).
"""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from bench.verdict_families.families import has, make_world, pick, renew
from bench.verdict_families.worlds import Drawn, Stream, World

LEAST_HIT = 12.0
VERSIONED = ("prompt", "schema", "release")
CAUSES = {"provider": "provider_outage", "node": "validator"}
"""The causes of a value of a dimension, where they have another name."""


class Hit(NamedTuple):
    """A cause: the values of one dimension, how its calls fail, and how many."""

    dimension: str
    kind: str
    rate: float
    begins: float = 0.0
    """In shares of the stretch since the first cause began."""
    share: float = 1.0
    """The share of a source's calls that have a new version."""


Two = tuple[Mapping[str, object], Hit, Hit]
DEVELOPED: Mapping[str, Two] = {
    "outage_and_prompt": (
        {"models": 6, "sources": 3},
        Hit("provider", "call_provider_error", 0.8),
        Hit("prompt", "not_json", 0.4),
    ),
    "key_and_region": (
        {"sources": 3, "regions": 3},
        Hit("credential", "call_other", 0.95),
        Hit("region", "call_timeout", 0.5),
    ),
    "large_model_and_small_one": (
        {"models": 6},
        Hit("model", "refusal", 0.8),
        Hit("model", "truncated", 0.15),
    ),
    "budget_beside_limit": (
        {"sources": 3},
        Hit("source", "truncated", 0.4),
        Hit("model", "call_rate_limited", 0.5),
    ),
    "model_then_release": (
        {"sources": 2},
        Hit("model", "not_json", 0.4),
        Hit("release", "schema_invalid", 0.5, begins=0.7),
    ),
    "environment_and_schema": (
        {"environments": 3, "sources": 2},
        Hit("environment", "call_timeout", 0.6),
        Hit("schema", "schema_invalid", 0.5),
    ),
    "validator_and_outage": (
        {"models": 6},
        Hit("everything", "schema_invalid", 0.2),
        Hit("provider", "call_provider_error", 0.9, begins=0.5),
    ),
    "host_and_canary": (
        {"hosts": 3, "sources": 2},
        Hit("upstream", "empty_output", 0.5),
        Hit("prompt", "not_json", 0.5, share=0.3),
    ),
    "two_models_of_one_kind": (
        {"models": 6},
        Hit("model", "not_json", 0.6),
        Hit("model", "not_json", 0.3),
    ),
    "node_and_quota": (
        {"nodes": 3, "models": 6},
        Hit("node", "schema_invalid", 0.4),
        Hit("provider", "call_rate_limited", 0.4, begins=0.3),
    ),
}
HELD_OUT: Mapping[str, Two] = {
    "quota_of_key_and_refusals": (
        {"sources": 3, "models": 5},
        Hit("credential", "call_rate_limited", 0.5),
        Hit("model", "refusal", 0.5),
    ),
    "region_and_prompt": (
        {"regions": 3, "sources": 2},
        Hit("region", "call_timeout", 0.5),
        Hit("prompt", "schema_invalid", 0.4),
    ),
    "release_then_source": (
        {"sources": 3},
        Hit("release", "truncated", 0.5),
        Hit("source", "not_json", 0.4, begins=0.6),
    ),
    "retired_model_and_schema": (
        {"models": 5, "sources": 2},
        Hit("model", "call_other", 0.97),
        Hit("schema", "schema_invalid", 0.3),
    ),
    "outage_and_small_canary": (
        {"models": 6, "sources": 2},
        Hit("provider", "call_timeout", 0.95),
        Hit("prompt", "truncated", 0.4, share=0.2),
    ),
    "model_then_environment": (
        {"environments": 3},
        Hit("model", "empty_output", 0.5),
        Hit("environment", "call_timeout", 0.5, begins=0.5),
    ),
    "host_and_source": (
        {"hosts": 3, "sources": 3},
        Hit("upstream", "call_provider_error", 0.5),
        Hit("source", "truncated", 0.35),
    ),
    "outage_then_model_elsewhere": (
        {"models": 8},
        Hit("provider", "call_provider_error", 0.4),
        Hit("model", "not_json", 0.5, begins=0.8),
    ),
    "node_and_key": (
        {"nodes": 3, "sources": 3},
        Hit("node", "schema_invalid", 0.5),
        Hit("credential", "call_other", 0.9),
    ),
    "two_prompts": (
        {"sources": 3},
        Hit("prompt", "not_json", 0.5),
        Hit("prompt", "truncated", 0.3, begins=0.4),
    ),
}


def make_pairs_of_causes(name: str, each: int, seed: int) -> Iterator[Drawn]:
    """Draw stories of a family with two causes."""
    for number in range(each):
        yield make_two(name, seed, number).draw(name, number)


def make_two(name: str, seed: int, number: int) -> World:
    """Return a world with two causes that both hit enough calls."""
    sizes, *hits = {**DEVELOPED, **HELD_OUT}[name]
    draw = random.Random(f"{name} {seed} {number}")  # noqa: S311 - a benchmark
    while True:
        world, taken = make_world(draw, dict(sizes)), set[tuple[str, str]]()
        if min([_apply(world, hit, taken) for hit in hits]) >= LEAST_HIT:
            return world


def _apply(world: World, hit: Hit, taken: set[tuple[str, str]]) -> float:
    """Let a cause begin; return how many calls fail because of it."""
    world.begin_at(hit.begins)
    where, answers = _hit(world, hit, taken)
    before = _failing(world)
    world.rise(where, hit.kind, hit.rate, answers)
    return (_failing(world) - before) * world.hours_after * (1 - hit.begins)


def _failing(world: World) -> float:
    return sum(stream.rate * stream.per_hour for stream in world.after)


def _hit(
    world: World, hit: Hit, taken: set[tuple[str, str]]
) -> tuple[Callable[[Stream], bool], set[tuple[str, str]]]:
    """Return which calls a cause hits, and what it may be called."""
    name = hit.dimension
    if name == "everything":
        return lambda _: True, {("validator", "")}
    chosen = "source" if name in VERSIONED else name
    value = pick(world, chosen, among=3)
    while (name, value) in taken:
        value = pick(world, chosen, among=3)
    taken.add((name, value))
    if name in VERSIONED:
        new = renew(world, name, value, share=hit.share, first=hit.begins * world.hours_after)
        return has(name, new), {(name, new)}
    answers = {(CAUSES.get(name, name), value)}
    streams = [stream for stream in world.after if stream.get(name) == value]
    if name == "provider":
        models = {stream.get("model") for stream in streams}
        answers |= {("model", model) for model in models} if len(models) == 1 else set()
    if name == "upstream":
        answers |= {("served", value)}
    if name == "credential":
        account = f"{streams[0].get('source')} with {streams[0].get('provider')}"
        answers |= {("credential", account), ("pair", account)}
    return has(name, value), answers
