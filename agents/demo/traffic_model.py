"""The project something happens to: who calls which model how often, and how it goes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from diagnostics.verdict.cells import Dimensions

MODELS = (
    ("anthropic", "claude-haiku-4"),
    ("anthropic", "claude-sonnet-4"),
    ("openai", "gpt-4.1"),
    ("openai", "gpt-4.1-mini"),
    ("mistral", "mistral-large-2"),
    ("mistral", "mistral-small-3"),
)
SCHEMAS = {"plan": "PlanPayload", "next_step": "NextStepProposal"}
SOURCES = ("demo-support-bot", "demo-ops-assistant", "demo-billing")
PROMPTS = {
    "demo-support-bot": ("planner-v4", "planner-v5"),
    "demo-ops-assistant": ("ops-v2", "ops-v3"),
    "demo-billing": ("billing-v7", "billing-v8"),
}
RELEASE = "2026.11.2-1"
PARSE = (
    "not_json",
    "schema_invalid",
    "truncated",
    "multiple_objects",
    "duplicate_key",
    "empty_output",
    "refusal",
)
USUAL_WEIGHTS = (0.28, 0.42, 0.12, 0.07, 0.04, 0.04, 0.03)
SILENT = ("call_timeout", "call_provider_error", "call_rate_limited")

Rates = Mapping[str, float]
"""The chance of each kind of failure of one call."""


@dataclass(frozen=True, slots=True)
class TrafficShape:
    """How large the project is, how long ago it happened, and how bad it is."""

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
    """Whether deploys are told."""


@dataclass(frozen=True, slots=True)
class World:
    """Every place that is called, its share of the calls, and its usual failures."""

    shares: Mapping[Dimensions, float]
    usual: Mapping[Dimensions, Rates]
    models: tuple[tuple[str, str], ...]
    sources: tuple[str, ...]
    nodes: tuple[str, ...]
    moved: Mapping[Dimensions, float] = field(default_factory=dict)
    """Shares of the calls once something happened, where they differ."""

    def rates(self, place: Dimensions) -> Rates:
        """Return the usual failures of a place; a new version fails like the old one."""
        return self.usual.get(place) or self.usual[_settled(self, place)]


def _settled(world: World, place: Dimensions) -> Dimensions:
    """Find the place that calls came from before it had its new version."""
    same = (one for one in world.shares if _is_origin(one, place))
    return next(same)


def _is_origin(old: Dimensions, new: Dimensions) -> bool:
    return old.who == new.who and old.source == new.source


WEAKEST, STRONGEST = 0.15, 0.5
HOURS = (2.0, 3.0, 6.0, 6.0, 12.0, 20.0)
"""How long ago incidents began."""


def draw_shape(random: Random, weakest: float = WEAKEST) -> TrafficShape:
    """Draw how large and how bad: from 30 to 150 runs an hour, 2 to 20 hours."""
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
    """Draw who calls what: every source calls every model, most of them some more."""
    models = tuple(random.sample(MODELS, shape.models))
    sources, nodes = SOURCES[: shape.sources], tuple(SCHEMAS)[: shape.nodes]
    environments = {"prod": 1.0, "staging": 0.2}
    weight = {one: random.uniform(0.4, 2.0) for one in (*models, *sources, *nodes)}
    shares = {
        Dimensions(*model, prompt, SCHEMAS[node], "3", source, RELEASE, node, environment): (
            weight[model] * weight[source] * weight[node] * environments[environment]
        )
        for model in models
        for source in sources
        for node in nodes
        for prompt in PROMPTS[source]
        for environment in (*environments,)[: shape.environments]
    }
    total = sum(shares.values())
    return World(
        {place: share / total for place, share in shares.items()},
        _usual(shares, random),
        models,
        sources,
        nodes,
    )


def scale_usual(world: World, place: Dimensions, factor: float) -> Rates:
    """Return the usual failures of a place, all so many times as frequent."""
    return {kind: share * factor for kind, share in world.rates(place).items()}


def with_usual(world: World, usual: Mapping[Dimensions, Rates]) -> World:
    """Return the world with other usual failures at some places."""
    return replace(world, usual={**world.usual, **usual})


def _usual(places: Mapping[Dimensions, float], random: Random) -> Mapping[Dimensions, Rates]:
    """A level for each model and node; prompts and sources differ a little in it."""
    level = {(p.model, p.node): random.uniform(0.02, 0.08) for p in places}
    silent = {p.provider: random.uniform(0.001, 0.005) for p in places}
    taste = {
        name: random.uniform(0.85, 1.15)
        for place in places
        for name in (place.prompt_version, place.source)
    }
    return {
        place: dict(
            zip(
                PARSE,
                (w * _level(place, level, taste) for w in USUAL_WEIGHTS),
                strict=True,
            )
        )
        | {SILENT[0]: silent[place.provider], SILENT[1]: silent[place.provider] / 2}
        for place in places
    }


def _level(
    place: Dimensions,
    level: Mapping[tuple[str | None, str], float],
    taste: Mapping[str | None, float],
) -> float:
    return level[place.model, place.node] * taste[place.prompt_version] * taste[place.source]
