"""Projects in which goals differ in hardness: attempts of one run fail together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, product
from math import cos, exp, log, pi
from random import Random

from agents.demo.drawn_runs import DrawnRun
from diagnostics.verdict.cells import Dimensions

HOUR = timedelta(hours=1)
ANSWER_KINDS = ("not_json", "schema_invalid", "truncated", "duplicate_key", "empty_output")
CALL_KINDS = ("call_timeout", "call_provider_error", "call_rate_limited")
MAKERS = ("anthropic", "google", "groq", "mistral", "openai")
NODE_NAMES = ("plan", "next_step", "actions")
HIGHEST = 0.97

Shares = Mapping[str, float]
Touches = Callable[[Dimensions], bool]


@dataclass(frozen=True, slots=True)
class Effect:
    """Failures that come on top at some calls, from a time on; `ramp` is how long it grows."""

    touches: Touches
    shares: Shares
    begin: datetime
    end: datetime
    ramp: timedelta = timedelta(0)

    def strength(self, at: datetime) -> float:
        """Return the part of the shares that counts at a time."""
        if not self.begin <= at < self.end:
            return 0.0
        return min((at - self.begin) / self.ramp, 1.0) if self.ramp else 1.0


@dataclass(frozen=True, slots=True)
class Shift:
    """A part of some calls that go elsewhere between two times: a version, a model, a source."""

    touches: Touches
    begin: datetime
    end: datetime
    new: Mapping[str, str]
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class Project:
    """Who calls what how often, and how often that fails; shares are of one call."""

    weights: Mapping[Dimensions, float]
    usual: Mapping[Dimensions, Shares]
    runs_per_hour: float
    days: float
    tries: int
    hardness: float
    """Variance of the hardness of goals: 0 makes the attempts of a run independent."""
    burst: float
    """Mean number of runs that arrive together."""
    night: float
    """Traffic at night as a share of the day's."""

    def values(self, name: str) -> list[str]:
        """Return the values of a dimension, the most called first."""
        sums: dict[str, float] = {}
        for place, weight in self.weights.items():
            if value := getattr(place, name):
                sums[value] = sums.get(value, 0.0) + weight
        return sorted(sums, key=lambda value: -sums[value])

    def models(self, least: float = 0.0) -> list[tuple[str, str]]:
        """Return provider and model of those with at least a share of the calls."""
        sums: dict[tuple[str, str], float] = {}
        for place, weight in self.weights.items():
            model = (place.provider or "", place.model or "")
            sums[model] = sums.get(model, 0.0) + weight
        total = sum(sums.values())
        return [model for model, weight in sorted(sums.items()) if weight / total >= least]

    def shares_at(self, place: Dimensions) -> Shares:
        """Return the usual shares of a place; a moved call keeps those of its planner."""
        if place in self.usual:
            return self.usual[place]
        alike = (
            shares
            for known, shares in self.usual.items()
            if (known.model, known.source) == (place.model, place.source)
        )
        return next(alike, {"schema_invalid": 0.03})


def draw_project(
    random: Random, *, models: int = 0, sources: int = 0, rate: tuple[float, float] = (2.5, 160)
) -> Project:
    """Draw a project; 0 models or sources: any number."""
    named = _draw_models(random, models or random.choice((2, 3, 4, 6, 9)))
    told = [f"svc-{n}" for n in range(1, (sources or random.choice((1, 2, 3, 5))) + 1)]
    nodes = random.sample(NODE_NAMES, random.randint(1, 3))
    popularity = {name: random.lognormvariate(0, 0.8) for name in (*named, *told, *nodes)}
    level = {model: random.choice((0.01, 0.03, 0.06, 0.15)) for model in named}
    hard = {source: random.choice((0.7, 1.0, 1.0, 2.0)) for source in told}
    weights: dict[Dimensions, float] = {}
    usual: dict[Dimensions, Shares] = {}
    for model, source, node in product(named, told, nodes):
        place = Dimensions(*model, f"{node}-v1", None, None, source, "1.0", node, "prod")
        weights[place] = popularity[model] * popularity[source] * popularity[node]
        usual[place] = _mixture(random, min(level[model] * hard[source], 0.35))
    per_hour = exp(random.uniform(log(rate[0]), log(rate[1])))
    return Project(
        weights,
        usual,
        per_hour,
        days=random.choice((4.0, 7.0, 8.5)),
        tries=random.randint(1, 3),
        hardness=random.choice((0.0, 0.5, 1.5)),
        burst=random.choice((1.0, 1.0, 3.0, 8.0)),
        night=random.choice((1.0, 0.4, 0.1)),
    )


def play(
    project: Project,
    random: Random,
    begin: datetime,
    end: datetime,
    effects: Sequence[Effect],
    shifts: Sequence[Shift],
) -> Iterator[DrawnRun]:
    """Yield the runs between two times, in order."""
    places = list(project.weights)
    sums = list(accumulate(project.weights.values()))
    at = begin
    while True:
        rate = project.runs_per_hour / project.burst * _daily(at, project.night)
        at += HOUR * random.expovariate(max(rate, 0.05))
        for _ in range(1 if project.burst == 1 else 1 + int(random.expovariate(1 / project.burst))):
            moment = at + timedelta(seconds=random.uniform(0, 40))
            if moment >= end:
                return
            place = _moved(random.choices(places, cum_weights=sums)[0], moment, shifts, random)
            yield DrawnRun(moment, place, _calls(project, place, moment, effects, random))


def _calls(
    project: Project, place: Dimensions, at: datetime, effects: Sequence[Effect], random: Random
) -> tuple[str | None, ...]:
    shares = dict(project.shares_at(place))
    for effect in effects:
        if effect.touches(place) and (strength := effect.strength(at)):
            for kind, share in effect.shares.items():
                shares[kind] = shares.get(kind, 0.0) + share * strength
    shape = 1 / project.hardness if project.hardness else 0.0
    hardness = random.gammavariate(shape, 1 / shape) if shape else 1.0
    calls: list[str | None] = []
    while len(calls) < project.tries and (not calls or calls[-1]):
        calls.append(_outcome(shares, hardness, random))
    return tuple(calls)


def _outcome(shares: Shares, hardness: float, random: Random) -> str | None:
    total = sum(shares.values())
    # Odds grow with hardness, so that a share stays a share.
    odds = hardness * total / max(1 - total, 1 - HIGHEST)
    if random.random() >= min(odds / (1 + odds), HIGHEST):
        return None
    return random.choices(list(shares), weights=list(shares.values()))[0]


def _moved(place: Dimensions, at: datetime, shifts: Sequence[Shift], random: Random) -> Dimensions:
    for shift in shifts:
        is_on = shift.begin <= at < shift.end and shift.touches(place)
        if is_on and random.random() < shift.part:
            place = place._replace(**shift.new)
    return place


def _daily(at: datetime, night: float) -> float:
    swing = (1 - cos((at.hour + at.minute / 60) / 24 * 2 * pi)) / 2
    return night + (1 - night) * swing


def _draw_models(random: Random, number: int) -> list[tuple[str, str]]:
    makers = random.sample(MAKERS, min(random.randint(1, 4), number))
    return [(makers[n % len(makers)], f"{makers[n % len(makers)]}-m{n}") for n in range(number)]


def _mixture(random: Random, level: float) -> Shares:
    kinds = [*random.sample(ANSWER_KINDS, 3), random.choice(CALL_KINDS)]
    parts = [random.expovariate(1) + 0.05 for _ in kinds]
    return {kind: level * part / sum(parts) for kind, part in zip(kinds, parts, strict=True)}
