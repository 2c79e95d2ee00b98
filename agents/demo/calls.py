"""The calls of one run at one node: answers, times, outcome.

Answers are valid, or spoiled in known ways; the product's own parser finds the errors.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from random import Random
from typing import Any

from agents.demo.story import STORY, Mix, RunPace, Scenario
from agents.goals.state import SCHEMA_OF_NODE
from diagnostics.verdict.cells import Dimensions
from failsoft.events import CallErrorType, ParseErrorType
from failsoft.retry.answers import Misunderstood, PlannerSchema, Understood, interpret

Value = dict[str, Any]

CHARACTERS_PER_TOKEN = 2.6
OUTPUT_LIMIT_TOKENS = {PlannerSchema.PLAN: 512, PlannerSchema.NEXT_STEP: 192}
CUT_SHARES = (0.93, 0.97, 1.0, 1.04)
"""Of the token limit: a token is not always the same number of characters."""
WORDS = (
    "This matters because everything after it depends on what it returns, so it "
    "has to be done with care and its result has to be kept. It is also worth "
    "saying that the same step was part of earlier requests of this kind and went "
    "well each time, which is why it is placed here and not later. If it should "
    "turn out that nothing comes back, the steps that follow are of no use, and "
    "that should be said plainly at the end."
)


def _dump(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _without_tool(value: Value) -> Value:
    if "steps" not in value:
        return {"kind": "call_tool", "args": value["args"]}
    *others, last = value["steps"]
    return {"steps": [*others, {key: last[key] for key in last if key != "tool"}]}


def _undeclared_dependency(value: Value) -> Value:
    first, second, *others = value["steps"]
    return {"steps": [first, {**second, "dependencies": ["fetch_order"]}, *others]}


def _gap(value: Value) -> Value:
    *others, last = value["steps"]
    number = len(value["steps"]) + 1
    return {"steps": [*others, {**last, "step_id": f"step_{number}", "dependencies": ["step_1"]}]}


def _circle(value: Value) -> Value:
    first, second, *others = value["steps"]
    tied = {**first, "dependencies": ["step_2"]}, {**second, "dependencies": ["step_1"]}
    return {"steps": [*tied, *others]}


def _wordy(value: Value) -> Value:
    if "steps" not in value:
        return {"kind": value["kind"], "thought": f"{WORDS} {WORDS}", **value}
    return {"steps": [{**step, "title": f"{step['title']}. {WORDS}"} for step in value["steps"]]}


SPOILED_VALUES: Mapping[PlannerSchema, tuple[Callable[[Value], Value], ...]] = {
    PlannerSchema.PLAN: (_without_tool, _undeclared_dependency, _gap, _circle),
    PlannerSchema.NEXT_STEP: (
        _without_tool,
        lambda value: {**value, "args": list(value["args"].values())},
        lambda value: {**value, "kind": "tool_call"},
    ),
}
_ALL, _ARGS = re.compile(r".+", re.DOTALL), re.compile(r'"args": \{')
SPOILED_TEXTS = (
    (_ALL, "Sure! First I would look it up, and the rest follows step by step."),
    (_ALL, "I'm sorry, but I can't help with changing orders or accounts."),
    (_ALL, "\n"),
    (_ALL, '\\g<0>\n\nA shorter way would be:\n\n{"steps": []}'),
    (_ARGS, '"args": { ...'),
    (_ARGS, '"args": {},\n  "args": {'),
)
"""What is found once in a valid answer, and what is written instead."""


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    text: str
    finish_reason: str
    reading: Understood | Misunderstood
    output_tokens: int
    # How often it is picked among those of its kind.
    weight: int = 1

    @property
    def kind(self) -> ParseErrorType | None:
        return self.reading.error_type if isinstance(self.reading, Misunderstood) else None

    def has_error(self, codes: frozenset[str]) -> bool:
        reading = self.reading
        return isinstance(reading, Misunderstood) and any(e.code in codes for e in reading.errors)


def _answer(
    schema: PlannerSchema, text: str, *, is_cut: bool = False, weight: int = 1
) -> DemoAnswer:
    limit, finish_reason = OUTPUT_LIMIT_TOKENS[schema], "length" if is_cut else "stop"
    tokens = limit if is_cut else min(limit, round(len(text) / CHARACTERS_PER_TOKEN))
    return DemoAnswer(text, finish_reason, interpret(text, finish_reason, schema), tokens, weight)


def good_answers(schema: PlannerSchema, scenario: Scenario) -> Iterator[DemoAnswer]:
    """Yield the valid answer as plain JSON, in a fence, and after a sentence."""
    text = _dump(_good_value(schema, scenario))
    yield _answer(schema, text, weight=90)
    yield _answer(schema, f"```json\n{text}\n```", weight=6)
    yield _answer(schema, f"Here is the plan:\n\n{text}", weight=4)


def spoiled_answers(schema: PlannerSchema, scenario: Scenario) -> Iterator[DemoAnswer]:
    """Yield the valid answer spoiled in every way that fits the schema."""
    value = _good_value(schema, scenario)
    for spoil in SPOILED_VALUES[schema]:
        yield _answer(schema, _dump(spoil(value)))
    for found, written in SPOILED_TEXTS:
        yield _answer(schema, found.sub(written, _dump(value), count=1))
    limit = OUTPUT_LIMIT_TOKENS[schema] * CHARACTERS_PER_TOKEN
    cuts = [_dump(_wordy(value))[: int(limit * share)] for share in CUT_SHARES]
    token = sha256(scenario.goal.encode()).hexdigest()[:40]
    leaked = f'"args": {{\n "authorization": "Bearer {token}",'
    for text in (*cuts, _ARGS.sub(leaked, cuts[-1], count=1)):
        yield _answer(schema, text, is_cut=True)


def _good_value(schema: PlannerSchema, scenario: Scenario) -> Value:
    return scenario.plan if schema is PlannerSchema.PLAN else scenario.next_step


def answers_to(schema: PlannerSchema, scenario: Scenario) -> tuple[DemoAnswer, ...]:
    return (*good_answers(schema, scenario), *spoiled_answers(schema, scenario))


@cache
def answers_of(schema: PlannerSchema, source: str | None) -> tuple[DemoAnswer, ...]:
    """Return every answer of a source's models; a source without scenarios has those of all."""
    scenarios = [item for item in STORY.scenarios if item.source == source] or STORY.scenarios
    return tuple(answer for item in scenarios for answer in answers_to(schema, item))


Outcome = ParseErrorType | CallErrorType | None
"""The outcome of a call: a kind of failure, or None for a valid answer."""


def pick_answer(
    answers: Sequence[DemoAnswer], codes: frozenset[str], random: Random, kind: Outcome
) -> DemoAnswer:
    """Pick an answer of a kind, if possible with one of these error codes."""
    of_kind = [answer for answer in answers if answer.kind == kind]
    fitting = [answer for answer in of_kind if answer.has_error(codes)] or of_kind
    return random.choices(fitting, [answer.weight for answer in fitting])[0]


def pick_kind(mix: Mix, random: Random) -> ParseErrorType:
    return random.choices([*mix], [*mix.values()])[0]


TEMPERATURE = 0.2
PROMPT_TOKENS = 760
PAUSE = timedelta(milliseconds=40)
LOST_MS = {
    CallErrorType.TIMEOUT: 30_000,
    CallErrorType.PROVIDER_ERROR: 2_400,
    CallErrorType.RATE_LIMITED: 300,
}


@dataclass(frozen=True, slots=True)
class DemoCall:
    """One provider call; `answer` is None if there was none."""

    number: int
    answer: DemoAnswer | None
    error_type: CallErrorType | None
    called_at: datetime
    latency_ms: int
    input_tokens: int | None = None

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


def make_calls(
    pace: RunPace,
    outcomes: Iterable[Outcome],
    begin: datetime,
    pick: Callable[[Outcome], DemoAnswer],
    random: Random,
) -> tuple[DemoCall, ...]:
    """Return consecutive calls; `pick` returns the answer of an outcome."""
    calls: list[DemoCall] = []
    for number, outcome in enumerate(outcomes, start=1):
        at = calls[-1].ended_at + PAUSE if calls else begin
        if isinstance(outcome, CallErrorType):
            calls.append(DemoCall(number, None, outcome, at, LOST_MS[outcome]))
            continue
        answer = pick(outcome)
        share = 0.35 + 0.65 * answer.output_tokens / pace.output_tokens
        latency_ms = round(pace.latency_ms * share * random.lognormvariate(0, 0.22))
        # Later prompts contain the errors of earlier answers.
        input_tokens = PROMPT_TOKENS + random.randint(-60, 220) + (number - 1) * 340
        calls.append(DemoCall(number, answer, None, at, latency_ms, input_tokens))
    return tuple(calls)
