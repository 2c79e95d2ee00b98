"""The calls of one run at one node: when, what came back, how it ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from agents.demo.answers import (
    CHARACTERS_PER_TOKEN,
    OUTPUT_LIMIT_TOKENS,
    DemoAnswer,
    good_answers,
    sort_spoiled,
)
from agents.demo.fleet import OPERATIONS, SUPPORT, DemoSeries, Mix
from agents.demo.incidents import Odds
from agents.demo.sample_goals import OPERATIONS_SCENARIOS, SUPPORT_SCENARIOS, Scenario
from failsoft.events import CallErrorType, ParseErrorType
from failsoft.retry.answers import WRITTEN, Misunderstood, PlannerSchema

SCENARIOS = {SUPPORT: SUPPORT_SCENARIOS, OPERATIONS: OPERATIONS_SCENARIOS}
SCHEMA_OF_NODE = {"plan": PlannerSchema.PLAN, "next_step": PlannerSchema.NEXT_STEP}
TEMPERATURE = 0.2
PROMPT_TOKENS = 760
GOOD_WEIGHTS = (90, 6, 4)
"""Plain JSON, in a fence, behind a sentence."""


@dataclass(frozen=True, slots=True)
class DemoCall:
    """One provider call; `written` is None when no answer came back."""

    number: int
    written: DemoAnswer | None
    error_type: CallErrorType | None
    called_at: datetime
    latency_ms: int
    input_tokens: int | None
    output_tokens: int | None
    output_mode: str
    simplified: bool

    @property
    def ended_at(self) -> datetime:
        """When the call was over."""
        return self.called_at + timedelta(milliseconds=self.latency_ms)

    @property
    def misreading(self) -> Misunderstood | None:
        """Why the answer could not be used, or None."""
        reading = self.written.reading if self.written else None
        return reading if isinstance(reading, Misunderstood) else None


@dataclass(frozen=True, slots=True)
class Ladder:
    """All calls of one run at one node, and the reason when it degraded."""

    correlation_id: str
    line: DemoSeries
    environment: str
    prompt_version: str
    release: str
    cycle: int
    calls: tuple[DemoCall, ...]
    reason: str | None = None
    unknown_tool: str | None = None
    schema_version: str = "1"

    @property
    def schema(self) -> PlannerSchema:
        """What the planner was asked for."""
        return SCHEMA_OF_NODE[self.line.node]

    @property
    def ended_at(self) -> datetime:
        """When its last call was over."""
        return self.calls[-1].ended_at


@dataclass(frozen=True, slots=True)
class Repertoire:
    """Every answer a source's models can give, sorted once."""

    good: Mapping[PlannerSchema, Sequence[Sequence[DemoAnswer]]]
    spoiled: Mapping[PlannerSchema, Mapping[ParseErrorType, Sequence[DemoAnswer]]]

    def pick_good(self, schema: PlannerSchema, random: Random) -> DemoAnswer:
        """Pick a good answer, mostly a plain one."""
        variants = random.choice(self.good[schema])
        return random.choices(variants, GOOD_WEIGHTS)[0]

    def pick_spoiled(self, schema: PlannerSchema, odds: Odds, random: Random) -> DemoAnswer:
        """Pick a bad answer by the odds, marked like the incident if there is one."""
        error_type = pick_kind(odds.mix, random)
        written = self.spoiled[schema][error_type]
        marked = [item for item in written if codes_of(item) & odds.codes]
        return random.choice(marked or written)


def repertoire_of(scenarios: Sequence[Scenario], random: Random) -> Repertoire:
    """Write down all answers for some scenarios."""
    return Repertoire(
        {schema: [[*good_answers(schema, item)] for item in scenarios] for schema in WRITTEN},
        {schema: sort_spoiled(schema, scenarios, random) for schema in WRITTEN},
    )


def codes_of(written: DemoAnswer) -> set[str | None]:
    """Return the codes of the errors in an answer."""
    reading = written.reading
    return {error.code for error in reading.errors} if isinstance(reading, Misunderstood) else set()


def pick_kind(mix: Mix, random: Random) -> ParseErrorType:
    """Pick a kind of failure by its weight."""
    return random.choices([*mix], [*mix.values()])[0]


def answer_call(
    line: DemoSeries, number: int, written: DemoAnswer, called_at: datetime, random: Random
) -> DemoCall:
    """Make the call that brought an answer; later ones carry the errors before."""
    limit = OUTPUT_LIMIT_TOKENS[SCHEMA_OF_NODE[line.node]]
    tokens = min(limit, round(len(written.text) / CHARACTERS_PER_TOKEN))
    if written.finish_reason == "length":
        tokens = limit
    share = 0.35 + 0.65 * tokens / line.output_tokens
    return DemoCall(
        number=number,
        written=written,
        error_type=None,
        called_at=called_at,
        latency_ms=round(line.latency_ms * share * random.lognormvariate(0, 0.22)),
        input_tokens=PROMPT_TOKENS + random.randint(-60, 220) + (number - 1) * 340,
        output_tokens=tokens,
        output_mode=mode_of(line, number),
        simplified=number > 1,
    )


def lost_call(
    line: DemoSeries,
    number: int,
    error_type: CallErrorType,
    called_at: datetime,
    latency_ms: int,
) -> DemoCall:
    """Make the call that brought nothing."""
    return DemoCall(
        number=number,
        written=None,
        error_type=error_type,
        called_at=called_at,
        latency_ms=latency_ms,
        input_tokens=None,
        output_tokens=None,
        output_mode=mode_of(line, number),
        simplified=number > 1,
    )


def mode_of(line: DemoSeries, number: int) -> str:
    """Say how an attempt asked: text first, then by schema where it is offered."""
    return "schema" if number > 1 and line.provider == "openai" else "text"
