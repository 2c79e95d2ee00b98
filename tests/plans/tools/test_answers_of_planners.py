"""Plans, proposals and written calls of models are read with all they say, or refused."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from failsoft.actions.entries import ENTRIES
from failsoft.actions.verdicts import judge_calls
from failsoft.retry.answers import Misunderstood, PlannerSchema, interpret
from plans.tools import registry
from plans.tools.definition import Tool
from plans.tools.registry import SchemaArguments, call_check
from tests.model_answers import Answer, Refusal, read_answers, run, unexpected

pytestmark = pytest.mark.django_db
FILE = Path(__file__).parent / "answers_of_planners.toml"
ANSWERS = read_answers(FILE)
SCHEMAS = {"plan": PlannerSchema.PLAN, "next_step": PlannerSchema.NEXT_STEP}


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = tomllib.loads(FILE.read_text(encoding="utf-8"))["tools"]
    tools = {
        name: Tool(name, "", SchemaArguments(json.loads(schema), name), lambda *_: None)
        for name, schema in schemas.items()
    }
    monkeypatch.setattr(registry, "_tools", tools)


@pytest.mark.parametrize("layer", ["plan", "next_step", "written"])
def test_each_answer_is_read_with_all_it_says_or_refused(layer: str) -> None:
    faults = unexpected(run([one for one in ANSWERS if one.layer == layer], read))
    assert not faults, "\n".join(faults)


def read(answer: Answer) -> object:
    text, reason = answer.told["input"], answer.told.get("finish_reason")
    if answer.layer == "written":
        return _calls(text, reason)
    got = interpret(text, reason, SCHEMAS[answer.layer], call_check())
    if isinstance(got, Misunderstood):
        return Refusal(got.error_type.value)
    return _steps(got.value) if answer.layer == "plan" else _asked(got.value, answer)


def _steps(plan: dict[str, Any]) -> list[Any]:
    return [_step(step) for step in plan["steps"]]


def _step(step: dict[str, Any]) -> list[Any]:
    tool = step["tool"]
    name, args = (tool["name"], tool.get("args", {})) if isinstance(tool, dict) else (tool, {})
    return [step["step_id"], name, step.get("args", args), step.get("dependencies", [])]


def _asked(proposal: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """Leave out remarks, which may stay or go."""
    asked = {name for value in answer.values for name in value} or proposal.keys()
    return {name: proposal[name] for name in proposal if name in asked}


def _calls(text: str, reason: str | None) -> object:
    judged = judge_calls([], text, reason, ENTRIES)
    if judged.result.actions:
        return [action.tool_name for action in judged.result.actions]
    if isinstance(judged.verdict, Misunderstood) and not judged.result.failures:
        return Refusal(judged.verdict.error_type.value)
    return Refusal(judged.result.failures[0].code)
