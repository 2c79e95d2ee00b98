"""The calls of one run at one node: times, answers, outcome."""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from agents.demo.story import STORY, Mix, RunPace
from agents.goals.state import NODES
from diagnostics.verdict.cells import Dimensions
from failsoft.events import CallErrorType, ParseErrorType
from failsoft.retry.answers import WRITTEN, Misunderstood, PlannerSchema

SCHEMA_OF_NODE = {node: schema for schema, node in NODES.items()}
TEMPERATURE = 0.2
PROMPT_TOKENS = 760
PAUSE = timedelta(milliseconds=40)
GOOD_WEIGHTS = (90, 6, 4)
"""Plain JSON, in a fence, after a sentence."""
LOST_MS = {
    CallErrorType.TIMEOUT: 30_000,
    CallErrorType.PROVIDER_ERROR: 2_400,
    CallErrorType.RATE_LIMITED: 300,
}
Outcome = ParseErrorType | CallErrorType | None
"""The outcome of a call: a kind of failure, or None for a valid answer."""


@dataclass(frozen=True, slots=True)
class DemoCall:
    """One provider call; `answer` is None if there was none."""

    number: int
    answer: DemoAnswer | None
    error_type: CallErrorType | None
    called_at: datetime
    latency_ms: int
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def ended_at(self) -> datetime:
        return self.called_at + timedelta(milliseconds=self.latency_ms)

    @property
    def misreading(self) -> Misunderstood | None:
        reading = self.answer.reading if self.answer else None
        return reading if isinstance(reading, Misunderstood) else None


@dataclass(frozen=True, slots=True)
class DemoAttempts:
    """All calls of one run at one node."""

    correlation_id: str
    place: Dimensions
    calls: tuple[DemoCall, ...]
    cycle: int = 1
    unknown_tool: str | None = None

    @property
    def schema(self) -> PlannerSchema:
        return SCHEMA_OF_NODE[self.place.node]

    @property
    def ended_at(self) -> datetime:
        return self.calls[-1].ended_at

    @property
    def reason(self) -> str | None:
        last = self.calls[-1]
        if last.error_type is not None:
            timed_out = last.error_type is CallErrorType.TIMEOUT
            return "timeout" if timed_out else "provider_failed"
        return f"{self.place.node}_parse_failed" if last.misreading else None


@dataclass(frozen=True, slots=True)
class Repertoire:
    """Every answer of a source's models, sorted once."""

    good: Mapping[PlannerSchema, Sequence[Sequence[DemoAnswer]]]
    spoiled: Mapping[PlannerSchema, Mapping[ParseErrorType, Sequence[DemoAnswer]]]

    def pick(
        self,
        schema: PlannerSchema,
        kind: ParseErrorType | None,
        random: Random,
        codes: frozenset[str] = frozenset(),
    ) -> DemoAnswer:
        """Pick a valid answer, mostly a plain one, or one of a kind, if possible with a code."""
        if kind is None:
            return random.choices(random.choice(self.good[schema]), GOOD_WEIGHTS)[0]
        answers = self.spoiled[schema][kind]
        return random.choice([item for item in answers if codes_of(item) & codes] or answers)


def repertoires(random: Random) -> Mapping[str, Repertoire]:
    by_source = {}
    for source in STORY.sources:
        scenarios = [item for item in STORY.scenarios if item.source == source]
        by_source[source] = Repertoire(
            {schema: [[*good_answers(schema, item)] for item in scenarios] for schema in WRITTEN},
            {schema: sort_spoiled(schema, scenarios, random) for schema in WRITTEN},
        )
    return by_source


def codes_of(answer: DemoAnswer) -> set[str | None]:
    reading = answer.reading
    return {error.code for error in reading.errors} if isinstance(reading, Misunderstood) else set()


def pick_kind(mix: Mix, random: Random) -> ParseErrorType:
    return random.choices([*mix], [*mix.values()])[0]


def make_calls(
    node: str,
    pace: RunPace,
    outcomes: Iterable[Outcome],
    begin: datetime,
    pick_answer: Callable[[ParseErrorType | None], DemoAnswer],
    random: Random,
) -> tuple[DemoCall, ...]:
    """Return consecutive calls; `pick_answer` returns the answer of an outcome."""
    calls: list[DemoCall] = []
    limit = OUTPUT_LIMIT_TOKENS[SCHEMA_OF_NODE[node]]
    for number, outcome in enumerate(outcomes, start=1):
        at = calls[-1].ended_at + PAUSE if calls else begin
        if isinstance(outcome, CallErrorType):
            calls.append(DemoCall(number, None, outcome, at, LOST_MS[outcome]))
            continue
        answer = pick_answer(outcome)
        is_cut = answer.finish_reason == "length"
        tokens = limit if is_cut else min(limit, round(len(answer.text) / CHARACTERS_PER_TOKEN))
        share = 0.35 + 0.65 * tokens / pace.output_tokens
        latency_ms = round(pace.latency_ms * share * random.lognormvariate(0, 0.22))
        # Later prompts contain the errors of earlier answers.
        input_tokens = PROMPT_TOKENS + random.randint(-60, 220) + (number - 1) * 340
        calls.append(DemoCall(number, answer, None, at, latency_ms, input_tokens, tokens))
    return tuple(calls)
