"""Plans that cannot be meant: every door refuses them, located, and no tool is called."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from agents.goals.models import Goal
from agents.goals.requests import RequestRefusedError
from agents.goals.submission import submit_goal
from diagnostics.accounts.models import Project
from diagnostics.store.models import OutboxMessage
from failsoft.plans.contract import MAX_PAYLOAD_BYTES
from plans.models.run import Run
from plans.runs.submission import InvalidPlanError, submit_run
from plans.tools.definition import Tool

KEPT = 100


def step(step_id: object, *after: str) -> dict[str, Any]:
    return {"step_id": step_id, "dependencies": list(after), "tool": "echo"}


# The document, and the codes that must be told, each with its count.
BAD: dict[str, tuple[str, dict[str, int]]] = {
    "a MiB of brackets": ("[" * MAX_PAYLOAD_BYTES, {"too_deep": 1}),
    "a byte too many": ("[" * (MAX_PAYLOAD_BYTES + 1), {"too_large": 1}),
    "10,001 steps": (
        json.dumps({"steps": [step(f"step_{n}") for n in range(1, 10_002)]}),
        {"steps_too_many": 1},
    ),
    "cyclic, and dependent on itself": (
        json.dumps({"steps": [step("a", "b"), step("b", "a"), step("c", "c")]}),
        {"dependency_cycle": 1, "dependency_self": 1},
    ),
    "ids": (
        json.dumps({"steps": [step(n) for n in ("a", "a", "step_²", "__meta__")]}),
        {"step_id_duplicate": 1, "step_id_number": 1, "step_id_reserved": 1},
    ),
    "150 steps that are none": (
        json.dumps({"steps": [None, 5, "x"] * 50}, indent=1),
        {"step_type": KEPT},
    ),
}
every_bad_plan = pytest.mark.parametrize(("text", "codes"), BAD.values(), ids=list(BAD))
# Brackets without end are no JSON: they never get further than the door.
OF_JSON = {name: case for name, case in BAD.items() if case[0].startswith("{")}
every_bad_plan_of_json = pytest.mark.parametrize(
    ("text", "codes"), OF_JSON.values(), ids=list(OF_JSON)
)


@pytest.fixture(autouse=True)
def no_tool_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*arguments: object) -> None:
        raise AssertionError("a tool was called")

    monkeypatch.setattr(Tool, "call", call)


def assert_located(errors: list[dict[str, Any]], codes: dict[str, int]) -> None:
    found_codes = [error["code"] for error in errors]
    assert {code: found_codes.count(code) for code in found_codes} == codes
    for error in errors:
        assert set(error) == {"path", "code", "message", "line", "column"}
        assert error["line"] >= 1
        assert error["column"] >= 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("run_plan",), 2),
        (("run_plan", "--runner", "distributed"), 2),
        (("verify_contract", "--payload"), 1),
    ],
)
@every_bad_plan
def test_s2_2_commands_tell_every_error_and_run_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    text: str,
    codes: dict[str, int],
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    command, *rest = words
    arguments = [*rest, str(path)] if "--payload" in rest else [str(path), *rest]
    with pytest.raises(SystemExit) as caught:
        call_command(command, *arguments, "--json")
    assert caught.value.code == code
    assert_located(json.loads(capsys.readouterr().out)["errors"], codes)


@every_bad_plan_of_json
def test_s2_1_neither_runs_nor_goals_take_them(
    project: Project, text: str, codes: dict[str, int]
) -> None:
    payload = json.loads(text)
    with pytest.raises(InvalidPlanError) as refused:
        submit_run(project.pk, payload, None)
    assert {violation.code for violation in refused.value.violations} == set(codes)
    with pytest.raises(RequestRefusedError) as wrong:
        submit_goal(project.pk, {"goal": "Do it.", "plan": payload})
    assert {error.code for error in wrong.value.errors} == set(codes)
    assert all(error.path.startswith("/plan/") for error in wrong.value.errors)
    assert not Run.objects.exists()
    assert not Goal.objects.exists()
    assert not OutboxMessage.objects.exists()
