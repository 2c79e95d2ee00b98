"""A random project: which models are called how often, and how they fail."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from agents.goals.state import SCHEMA_OF_NODE
from diagnostics.verdict.cells import Dimensions

_WORLD_FILE = Path(__file__).with_name("world.toml")
WORLD: dict[str, Any] = tomllib.loads(_WORLD_FILE.read_text(encoding="utf-8"))
SILENT = ("call_timeout", "call_provider_error", "call_rate_limited")
WEAKEST, STRONGEST = 0.15, 0.5
HOURS = (2.0, 3.0, 6.0, 6.0, 12.0, 20.0)
"""Possible ages of incidents."""
NODES = ("plan", "next_step")

Rates = Mapping[str, float]
"""The probability of each kind of failure of one call."""


@dataclass(frozen=True, slots=True)
class TrafficShape:
    """The size of the project, and the age and severity of the incident."""

    runs_per_hour: float
    bad_hours: float
    strength: float
    models: int
    sources: int
    environments: int
    nodes: int
    part: float = 1.0
    """The share of calls that a new version goes to."""
    has_marks: bool = True
    """Whether deploys are reported."""


@dataclass(frozen=True, slots=True)
class World:
    """Every series, its share of the calls, and its usual failure rates."""

    shares: Mapping[Dimensions, float]
    usual: Mapping[Dimensions, Rates]
    models: tuple[tuple[str, str], ...]
    sources: tuple[str, ...]
    nodes: tuple[str, ...]
    moved: Mapping[Dimensions, float] = field(default_factory=dict)
    """Shares of the calls after the incident, where they differ."""

    def rates(self, place: Dimensions) -> Rates:
        """Return the usual failure rates of a series; a new version has those of the old one."""
        if usual := self.usual.get(place):
            return usual
        origins = (
            old for old in self.shares if (old.series, old.source) == (place.series, place.source)
        )
        return self.usual[next(origins)]


def draw_shape(random: Random, weakest: float = WEAKEST) -> TrafficShape:
    """Draw size and severity: from 30 to 150 runs an hour, 2 to 20 hours."""
    return TrafficShape(
        runs_per_hour=random.choice((30.0, 45.0, 60.0, 90.0, 150.0)),
        bad_hours=random.choice(HOURS),
        strength=random.uniform(weakest, STRONGEST),
        models=random.randint(3, 5),
        sources=random.randint(2, 3),
        environments=random.choice((1, 1, 2)),
        nodes=random.choice((1, 2, 2)),
        part=random.choice((1.0, 1.0, 0.5)),
        has_marks=random.random() < 0.7,
    )


def draw_world(shape: TrafficShape, random: Random) -> World:
    """Draw the traffic: every source calls every model, with different weights."""
    prompts = WORLD["prompts"]
    models = tuple((name, model) for name, model in random.sample(WORLD["models"], shape.models))
    release = WORLD["release"]
    sources, nodes = tuple(prompts)[: shape.sources], NODES[: shape.nodes]
    environments = {"prod": 1.0, "staging": 0.2}
    weight = {name: random.uniform(0.4, 2.0) for name in (*models, *sources, *nodes)}
    shares = {
        Dimensions(
            *model, prompt, SCHEMA_OF_NODE[node].value, "3", source, release, node, environment
        ): weight[model] * weight[source] * weight[node] * environments[environment]
        for model in models
        for source in sources
        for node in nodes
        for prompt in prompts[source]
        for environment in (*environments,)[: shape.environments]
    }
    return World(as_shares(shares), _usual(shares, random), models, sources, nodes)


def as_shares(weights: Mapping[Dimensions, float]) -> Mapping[Dimensions, float]:
    total = sum(weights.values())
    return {place: weight / total for place, weight in weights.items()}


def _usual(places: Mapping[Dimensions, float], random: Random) -> Mapping[Dimensions, Rates]:
    """Return a level for each model and node; prompts and sources vary it slightly."""
    level = {(p.model, p.node): random.uniform(0.02, 0.08) for p in places}
    silent = {p.provider: random.uniform(0.001, 0.005) for p in places}
    taste = {
        name: random.uniform(0.85, 1.15)
        for place in places
        for name in (place.prompt_version, place.source)
    }
    usual: dict[Dimensions, Rates] = {}
    for p in places:
        factor = level[p.model, p.node] * taste[p.prompt_version] * taste[p.source]
        written = {kind: weight * factor for kind, weight in WORLD["usual"].items()}
        usual[p] = written | {SILENT[0]: silent[p.provider], SILENT[1]: silent[p.provider] / 2}
    return usual
