"""Projects as they may be: 10 to 2,000 runs an hour, 2 to 12 models, uneven shares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import exp, log, sin
from random import Random

from diagnostics.verdict.cells import Dimensions

PROVIDERS = ("acme", "borealis", "cumulus", "delta-ai", "eleven")
NODES = ("plan", "next_step", "actions", "completion_check")
PARSE = ("not_json", "schema_invalid", "truncated", "multiple_objects", "empty_output", "refusal")
SILENT = ("call_timeout", "call_provider_error", "call_rate_limited")

Shares = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class World:
    """Who calls what how often, and how often that fails; shares are of one call."""

    weights: Mapping[Dimensions, float]
    usual: Mapping[Dimensions, Shares]
    runs_per_hour: float
    days: float
    """How long it is known."""
    tries: int
    stubborn: float
    """How much likelier a call fails after one that failed."""
    busy: Callable[[datetime], float]

    @property
    def models(self) -> list[tuple[str, str]]:
        """Every model with its provider."""
        return sorted({(p.provider or "", p.model or "") for p in self.weights})

    def values(self, name: str) -> list[str]:
        """Give the values of one field, the most called first."""
        sums: dict[str, float] = {}
        for place, weight in self.weights.items():
            value = getattr(place, name)
            if value is not None:
                sums[value] = sums.get(value, 0.0) + weight
        return sorted(sums, key=lambda value: -sums[value])

    def weight(self, touches: Callable[[Dimensions], bool]) -> float:
        """Give the share of runs at some places."""
        mine = sum(weight for place, weight in self.weights.items() if touches(place))
        return mine / sum(self.weights.values())


def draw_world(random: Random, *, single_models: bool = False) -> World:
    """Draw a project."""
    models = _models(random, single_models=single_models)
    sources = [f"agent-{letter}" for letter in "abcd"[: random.randint(1, 4)]]
    nodes = random.sample(NODES, random.randint(1, 3))
    environments = random.choice((["prod"], ["prod"], ["prod", "staging"]))
    says = {name: random.random() < 0.8 for name in ("prompt", "schema", "release")}
    weight = {one: random.lognormvariate(0, 0.9) for one in (*models, *sources, *nodes)}
    level = {model: random.choice((0.005, 0.02, 0.04, 0.12)) for model in models}
    taste = {model: _taste(random) for model in models}
    weights: dict[Dimensions, float] = {}
    usual: dict[Dimensions, Shares] = {}
    for model in models:
        for source in sources:
            for node in nodes:
                for number, environment in enumerate(environments):
                    prompts = random.randint(1, 2) if says["prompt"] else 1
                    for prompt in range(prompts):
                        place = Dimensions(
                            *model,
                            f"{node}-p{prompt + 1}" if says["prompt"] else None,
                            f"{node.title()}Answer" if says["schema"] else None,
                            "1" if says["schema"] else None,
                            source,
                            "r100" if says["release"] else None,
                            node,
                            environment,
                        )
                        weights[place] = (
                            weight[model] * weight[source] * weight[node] * (1.0, 0.12)[number]
                        )
                        usual[place] = {
                            kind: share * level[model] * random.uniform(0.8, 1.25)
                            for kind, share in taste[model].items()
                        }
    runs_per_hour = exp(random.uniform(log(10), log(2000)))
    return World(
        weights,
        usual,
        runs_per_hour=runs_per_hour,
        days=random.choice((1.5, 3.0, 7.0, 7.0) if runs_per_hour < 400 else (1.5, 3.0)),
        tries=random.randint(1, 4),
        stubborn=random.choice((1.0, 2.0, 4.0)),
        busy=_rhythm(random),
    )


def _models(random: Random, *, single_models: bool) -> list[tuple[str, str]]:
    providers = random.sample(PROVIDERS, random.randint(2, 4))
    if single_models:
        return [(provider, f"{provider}-one") for provider in providers]
    found = [(provider, f"{provider}-1") for provider in providers]
    while len(found) < random.randint(2, 12):
        provider = random.choice(providers)
        found.append((provider, f"{provider}-{len(found) + 1}"))
    return found


def _taste(random: Random) -> Shares:
    kinds = random.sample(PARSE, random.randint(2, 4))
    weights = {kind: random.expovariate(1.0) + 0.05 for kind in kinds}
    weights |= {kind: random.uniform(0.0, 0.1) for kind in SILENT}
    total = sum(weights.values())
    return {kind: weight / total for kind, weight in weights.items()}


def _rhythm(random: Random) -> Callable[[datetime], float]:
    """Even, office hours, or quiet weekends."""
    night = random.choice((1.0, 0.5, 0.1))
    weekend = random.choice((1.0, 0.6, 0.15))
    phase = random.uniform(0, 24)

    def busy(at: datetime) -> float:
        hour = at.hour + at.minute / 60
        swing = (1 + sin((hour - phase) / 24 * 6.2832)) / 2
        share = night + (1 - night) * swing
        return share * (weekend if at.weekday() >= 5 else 1.0)

    return busy
