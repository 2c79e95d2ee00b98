"""Incidents from a seed, as counts of calls: what happened, and when it began.

One project: models of three providers, two nodes, prompt and schema versions, sources with
releases. Healthy for a week, then six hours of something.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from diagnostics.core.verdict.cells import Cell, Place
from diagnostics.core.verdict.suspects import Cause

BEFORE_HOURS = 168
BAD_MINUTES = 360
MODELS = (
    ("anthropic", "claude-haiku-4"),
    ("anthropic", "claude-sonnet-4"),
    ("openai", "gpt-4.1"),
    ("openai", "gpt-4.1-mini"),
    ("mistral", "mistral-large"),
)
PARSE = ("not_json", "schema_invalid", "truncated", "refusal", "multiple_objects")
SCHEMAS = {"plan": "PlanPayload", "next_step": "NextStepProposal"}
SOURCES = ("support-bot", "billing", "ops")

Rates = dict[str, float]
Happening = tuple[Sequence[Place], Callable[[Place], Rates], Cause | None, str]
KINDS = (
    "provider_outage",
    "model",
    "prompt",
    "schema",
    "release",
    "validator",
    "two_causes",
    "mix_shift",
    "innocent_deploy",
    "healthy",
)


@dataclass(frozen=True, slots=True)
class Incident:
    """What the pages are asked about, and the truth."""

    kind: str
    cause: Cause | None
    value: str
    cells: Sequence[Cell]
    before: Sequence[Cell]


def make_incident(kind: str, seed: int) -> Incident:
    """Make one incident of a kind."""
    return _Maker(Random(f"{kind} {seed}")).make(kind)  # noqa: S311 - simulation


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        models = random.sample(MODELS, random.randint(3, 5))
        self.places = [
            Place(
                provider, model, prompt, SCHEMAS[node], "3", source, "r1", node, "prod"
            )
            for provider, model in models
            for node in SCHEMAS
            for prompt in ("planner-v4", "planner-v5")
            for source in SOURCES
        ]
        self.usual = {
            (place.model, place.node): {
                kind: random.uniform(0.002, 0.02) for kind in PARSE
            }
            | {"call_timeout": random.uniform(0.001, 0.006)}
            for place in self.places
        }
        self.volume = {place: random.uniform(0.2, 2.0) for place in self.places}
        self.strength = random.uniform(0.12, 0.5)
        self.worst: str | None = None
        self.bad_kind = random.choice(PARSE[:4])

    def make(self, kind: str) -> Incident:
        happenings = {
            "provider_outage": self._provider_outage,
            "model": self._model,
            "prompt": self._prompt,
            "schema": self._schema,
            "release": self._release,
            "validator": self._validator,
            "two_causes": self._two_causes,
            "innocent_deploy": self._innocent_deploy,
            "healthy": self._nothing,
            "mix_shift": self._nothing,
        }
        if kind == "mix_shift":
            self._worst_of_all()
        before = list(self._cells(self.places, BEFORE_HOURS, self._usual_rates))
        if kind == "mix_shift":
            self._shift()
        places, worse, cause, value = happenings[kind]()
        cells = list(self._cells(places, BAD_MINUTES / 60, worse))
        return Incident(kind, cause, value, cells, before)

    def _cells(
        self, places: Sequence[Place], hours: float, rates: Callable[[Place], Rates]
    ) -> Iterator[Cell]:
        for place in places:
            volume = self.volume.get(place) or self.volume[self._old(place)]
            attempts = sum(
                self.random.random() < 0.5 for _ in range(round(2 * volume * hours))
            )
            failures = dict.fromkeys(rates(place), 0)
            for _ in range(attempts):
                drawn = self.random.random()
                for name, share in rates(place).items():
                    drawn -= share
                    if drawn < 0:
                        failures[name] += 1
                        break
            if attempts:
                yield Cell(place, attempts, failures)

    def _old(self, place: Place) -> Place:
        return next(
            one
            for one in self.places
            if one.model == place.model
            and one.node == place.node
            and one.source == place.source
        )

    def _usual_rates(self, place: Place) -> Rates:
        return self.usual[place.model, place.node]

    def _worse(
        self, touched: Callable[[Place], bool], kind: str
    ) -> Callable[[Place], Rates]:
        def rates(place: Place) -> Rates:
            usual = self._usual_rates(place)
            if not touched(place):
                return usual
            return usual | {kind: usual.get(kind, 0.0) + self.strength}

        return rates

    def _replaced(self, chosen: Callable[[Place], bool], **new: str) -> list[Place]:
        return list(
            dict.fromkeys(
                replace_place(place, **new) if chosen(place) else place
                for place in self.places
            )
        )

    def _provider_outage(self) -> Happening:
        provider = self.random.choice(self.places).provider
        kind = self.random.choice(
            ("call_timeout", "call_provider_error", "call_rate_limited")
        )
        worse = self._worse(lambda place: place.provider == provider, kind)
        return self.places, worse, Cause.PROVIDER_OUTAGE, provider or ""

    def _model(self) -> Happening:
        bad = self.random.choice(self.places)
        worse = self._worse(lambda place: place.model == bad.model, self.bad_kind)
        return self.places, worse, Cause.MODEL, f"{bad.provider}/{bad.model}"

    def _prompt(self) -> Happening:
        places = self._replaced(
            lambda place: place.prompt_version == "planner-v5",
            prompt_version="planner-v6",
        )
        worse = self._worse(
            lambda place: place.prompt_version == "planner-v6", self.bad_kind
        )
        return places, worse, Cause.PROMPT, "planner-v6"

    def _schema(self) -> Happening:
        node = self.random.choice(list(SCHEMAS))
        places = self._replaced(lambda place: place.node == node, schema_version="4")
        worse = self._worse(lambda place: place.schema_version == "4", "schema_invalid")
        return places, worse, Cause.SCHEMA, f"{SCHEMAS[node]} 4"

    def _release(self) -> Happening:
        source = self.random.choice(SOURCES)
        places = self._replaced(lambda place: place.source == source, release="r2")
        worse = self._worse(lambda place: place.release == "r2", self.bad_kind)
        return places, worse, Cause.RELEASE, f"{source} r2"

    def _validator(self) -> Happening:
        worse = self._worse(lambda _: True, "schema_invalid")
        return self.places, worse, Cause.VALIDATOR, ""

    def _two_causes(self) -> Happening:
        one, other = self.random.sample(
            sorted({(place.provider, place.model) for place in self.places}), 2
        )
        second = next(kind for kind in PARSE if kind != self.bad_kind)

        def rates(place: Place) -> Rates:
            usual = self._usual_rates(place)
            if (place.provider, place.model) == one:
                return usual | {self.bad_kind: usual[self.bad_kind] + self.strength}
            if (place.provider, place.model) == other:
                return usual | {second: usual[second] + self.strength}
            return usual

        return self.places, rates, Cause.MIXED, ""

    def _worst_of_all(self) -> None:
        self.worst = self.random.choice(self.places).model
        for node in SCHEMAS:
            self.usual[self.worst, node] = dict.fromkeys(PARSE, 0.04)

    def _shift(self) -> None:
        """Send three times the traffic to the model that always was the worst."""
        self.volume = {
            place: volume * (3 if place.model == self.worst else 0.7)
            for place, volume in self.volume.items()
        }

    def _innocent_deploy(self) -> Happening:
        """One model got worse; at that moment one source was released."""
        bad = self.random.choice(self.places)
        source = self.random.choice(SOURCES)
        places = self._replaced(lambda place: place.source == source, release="r2")
        worse = self._worse(lambda place: place.model == bad.model, self.bad_kind)
        return places, worse, Cause.MODEL, f"{bad.provider}/{bad.model}"

    def _nothing(self) -> Happening:
        return self.places, self._usual_rates, None, ""


def replace_place(place: Place, **new: str) -> Place:
    """Give the place with other versions."""
    return place._replace(**new)
