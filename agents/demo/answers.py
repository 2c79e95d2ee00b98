"""Answers of the demo's models: valid ones, and valid ones spoiled in known ways.

Each text goes through the product's own parser, which finds the errors.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from agents.demo.story import Scenario, plan_of, proposal_of
from failsoft.events import ParseErrorType
from failsoft.retry.answers import Misunderstood, PlannerSchema, Understood, interpret

Value = dict[str, Any]
Spoil = Callable[[Value, Random], str]

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


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    text: str
    finish_reason: str
    reading: Understood | Misunderstood


def _dump(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _prose(value: Value, _: Random) -> str:
    first = value["steps"][0]["tool"]["name"] if "steps" in value else value["tool"]
    return (
        f"Sure! First I would call {first} and look at what comes back. "
        "After that the rest follows step by step, and the result can be passed on."
    )


def _elided(value: Value, _: Random) -> str:
    return _dump(value).replace('"args": {', '"args": { ...', 1)


def _twice(value: Value, _: Random) -> str:
    other = json.loads(json.dumps(value))
    holder = other["steps"][0]["tool"] if "steps" in other else other
    holder["args"] = {}
    return f"{_dump(value)}\n\nA shorter way would be:\n\n{_dump(other)}"


def _repeated_key(value: Value, _: Random) -> str:
    return _dump(value).replace('"args": {', '"args": {},\n  "args": {', 1)


def _wordy(value: Value) -> Value:
    if "steps" not in value:
        return {"kind": value["kind"], "thought": f"{WORDS} {WORDS}", **value}
    steps = [{**step, "title": f"{step['title']}. {WORDS}"} for step in value["steps"]]
    return {"steps": steps}


def _cut(share: float, value: Value, _: Random) -> str:
    schema = PlannerSchema.PLAN if "steps" in value else PlannerSchema.NEXT_STEP
    limit = OUTPUT_LIMIT_TOKENS[schema] * CHARACTERS_PER_TOKEN
    return _dump(_wordy(value))[: int(limit * share)]


def _cut_behind_a_token(value: Value, random: Random) -> str:
    token = random.randbytes(20).hex()
    leaked = f'"args": {{\n "authorization": "Bearer {token}",'
    return _cut(1.0, value, random).replace('"args": {', leaked, 1)


def _without_tool(value: Value, _: Random) -> str:
    if "steps" not in value:
        return _dump({"kind": "call_tool", "args": value["args"]})
    *rest, last = value["steps"]
    return _dump({"steps": [*rest, {k: v for k, v in last.items() if k != "tool"}]})


def _undeclared_dependency(value: Value, _: Random) -> str:
    steps = [*value["steps"]]
    steps[1] = {**steps[1], "dependencies": ["fetch_order"]}
    return _dump({"steps": steps})


def _gap(value: Value, _: Random) -> str:
    first, *rest = value["steps"]
    last = {**rest[-1], "step_id": f"step_{len(rest) + 2}", "dependencies": ["step_1"]}
    return _dump({"steps": [first, *rest[:-1], last]})


def _circle(value: Value, _: Random) -> str:
    first, second, *rest = value["steps"]
    tied = {**first, "dependencies": ["step_2"]}, {**second, "dependencies": ["step_1"]}
    return _dump({"steps": [*tied, *rest]})


SPOIL_ANY: tuple[Spoil, ...] = (
    _prose,
    _elided,
    lambda _, __: "I'm sorry, but I can't help with changing orders or accounts.",
    lambda _, __: "\n",
    _twice,
    _repeated_key,
    _without_tool,
)
SPOIL_PLAN: tuple[Spoil, ...] = (_undeclared_dependency, _gap, _circle)
SPOIL_PROPOSAL: tuple[Spoil, ...] = (
    lambda value, _: _dump({**value, "args": list(value["args"].values())}),
    lambda value, _: _dump({**value, "kind": "tool_call"}),
)
CUTS: tuple[Spoil, ...] = (*(partial(_cut, share) for share in CUT_SHARES), _cut_behind_a_token)


def good_value(schema: PlannerSchema, scenario: Scenario, cycle: int = 1) -> Value:
    return plan_of(scenario) if schema is PlannerSchema.PLAN else proposal_of(scenario, cycle)


def good_answers(schema: PlannerSchema, scenario: Scenario, cycle: int = 1) -> Iterator[DemoAnswer]:
    """Yield the valid answer as plain JSON, in a fence, and after a sentence."""
    text = _dump(good_value(schema, scenario, cycle))
    for variant in (text, f"```json\n{text}\n```", f"Here is the plan:\n\n{text}"):
        yield DemoAnswer(variant, "stop", interpret(variant, "stop", schema))


def spoiled_answers(
    schema: PlannerSchema, scenario: Scenario, random: Random
) -> Iterator[DemoAnswer]:
    """Yield the valid answer spoiled in every way that fits the schema."""
    value = good_value(schema, scenario)
    own = SPOIL_PLAN if schema is PlannerSchema.PLAN else SPOIL_PROPOSAL
    for spoil in (*SPOIL_ANY, *own):
        text = spoil(value, random)
        yield DemoAnswer(text, "stop", interpret(text, "stop", schema))
    for cut in CUTS:
        text = cut(value, random)
        yield DemoAnswer(text, "length", interpret(text, "length", schema))


def sort_spoiled(
    schema: PlannerSchema, scenarios: Iterable[Scenario], random: Random
) -> Mapping[ParseErrorType, list[DemoAnswer]]:
    sorted_answers: dict[ParseErrorType, list[DemoAnswer]] = {}
    for scenario in scenarios:
        for answer in spoiled_answers(schema, scenario, random):
            if isinstance(answer.reading, Misunderstood):
                sorted_answers.setdefault(answer.reading.error_type, []).append(answer)
    return sorted_answers
