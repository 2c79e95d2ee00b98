"""`manage.py run_goal`: workflow files, on a running Failsoft or in the command's process."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents import management
from agents.goals.models import Goal
from config.configuration import load_configuration
from diagnostics.accounts.projects import ensure_default_project
from plans.models.check import CompletionCheck
from tests.agents.conftest import Planner, work_off

TOP = Path(__file__).resolve().parents[2]
EXAMPLE = "examples/agent-pr-loop.yaml"
LEGACY = "examples/agent-pr-loop-legacy.yaml"


@pytest.fixture(autouse=True)
def workspaces(settings: Any, tmp_path: Path) -> None:
    settings.FAILSOFT_WORKSPACE_DIR = tmp_path / "spaces"
    # As on one machine: a server has no commands until it is told some.
    settings.FAILSOFT_CHECK_COMMANDS = load_configuration(local_stack=True).check_commands


def run_goal(*arguments: str) -> tuple[int, Any]:
    """Run the command with --json; the exit code and the document."""
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("run_goal", *arguments, "--json", stdout=out, stderr=StringIO())
    return int(str(ended.value.code)), json.loads(out.getvalue())


def test_s3_41_s3_43_the_example_fails_is_worked_on_and_passes() -> None:
    code, record = run_goal(EXAMPLE, "--in-process")

    assert (code, record["status"], record["cycle"]) == (0, "completed", 2)
    assert [item["decision"] for item in record["decisions"]] == ["incomplete", "complete"]
    assert {item["source"] for item in record["decisions"]} == {"file-json"}
    assert all(item["check_id_match"] for item in record["decisions"])
    assert len({item["check_id"] for item in record["decisions"]}) == 2


@pytest.mark.slow
def test_s3_43_the_example_runs_from_a_bare_checkout_and_leaves_nothing(tmp_path: Path) -> None:
    bare = {"PATH": os.environ["PATH"], "FAILSOFT_DATA_DIR": str(tmp_path)}

    ran = subprocess.run(
        [sys.executable, "manage.py", "run_goal", EXAMPLE, "--json"],
        env=bare, cwd=TOP, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert "nothing is stored" in ran.stderr
    assert [item["source"] for item in json.loads(ran.stdout)["decisions"]] == ["file-json"] * 2
    assert {path.name for path in tmp_path.rglob("*")} <= {"workspaces", "no-project"}


def test_s3_44_the_legacy_sample_keeps_working() -> None:
    code, record = run_goal(LEGACY, "--in-process")

    assert (code, record["cycle"]) == (0, 2)
    assert {item["source"] for item in record["decisions"]} == {"file-text"}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work off what is enqueued where the command would wait."""
    monkeypatch.setattr(management, "POLL_SECONDS", 0)
    monkeypatch.setattr("agents.management.time.sleep", lambda seconds: work_off())


def test_s3_43_on_a_running_stack_the_example_is_a_goal(db: None, at_once: None) -> None:
    ensure_default_project()
    code, record = run_goal(EXAMPLE)

    assert (code, record["status"], record["cycle"]) == (0, "completed", 2)
    goal = Goal.objects.get()
    assert (goal.plan_source, goal.language_model) == ("given", None)
    assert CompletionCheck.objects.count() == 2


def test_s3_47_both_ways_decide_alike(db: None, at_once: None) -> None:
    ensure_default_project()
    _, here = run_goal(EXAMPLE, "--in-process")
    _, there = run_goal(EXAMPLE)

    for name in ("decision", "source", "check_id_match", "reasons", "fingerprints"):
        assert [item[name] for item in here["decisions"]] == [
            item[name] for item in there["decisions"]
        ]


def test_a_refused_file_ends_with_two_and_its_place(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("goal: x\nstep: []\n", encoding="utf-8")
    code, document = run_goal(str(file))

    assert code == 2
    (error,) = document["errors"]
    assert (error["path"], error["line"], error["column"]) == ("/step", 2, 1)


def test_a_file_that_is_not_there_is_told() -> None:
    code, document = run_goal("nowhere.yaml")

    assert (code, document["errors"][0]["code"]) == (2, "unreadable")


def test_without_steps_a_running_stack_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "goal.yaml"
    file.write_text("goal: x\n", encoding="utf-8")

    with pytest.raises(CommandError, match="needs a running Failsoft") as caught:
        call_command("run_goal", str(file), "--in-process", stderr=StringIO())
    assert caught.value.returncode == 2


@pytest.mark.parametrize(
    ("check", "status", "reason"),
    [
        ("kind: tool\n  tool: echo\n", "failed", "max_iterations_reached"),
        ("kind: tool\n  tool: fail\n", "failed", "checker_failed"),
        (
            "kind: tool\n  tool: echo\n  on_exhausted: continue\n",
            "completed",
            "max_iterations_reached",
        ),
        (
            "kind: tool\n  tool: echo\n  undecidable_limit: 1\n",
            "failed",
            "undecidable_limit_exceeded",
        ),
    ],
)
def test_a_loop_here_ends_for_the_same_reasons(
    tmp_path: Path, check: str, status: str, reason: str
) -> None:
    file = tmp_path / "loop.yaml"
    steps = "steps:\n  - step_id: step_1\n    tool: echo\n"
    text = f"goal: x\nmax_iterations: 2\n{steps}completion_check:\n  {check}"
    file.write_text(text, encoding="utf-8")
    _, record = run_goal(str(file), "--in-process")

    assert (record["status"], record["reason"]) == (status, reason)


def test_without_a_check_the_steps_decide(tmp_path: Path) -> None:
    file = tmp_path / "plain.yaml"
    steps = "steps:\n  - step_id: step_1\n    tool: {}\n"
    for tool, status, cycle in (("echo", "completed", 1), ("fail", "failed", 3)):
        file.write_text(f"goal: x\n{steps.replace('{}', tool)}", encoding="utf-8")
        _, record = run_goal(str(file), "--in-process")
        assert (record["status"], record["cycle"]) == (status, cycle)


def test_a_model_plans_a_workflow_without_steps(
    planner: Planner, at_once: None, tmp_path: Path
) -> None:
    plan = '{"steps": [{"step_id": "step_1", "tool": "echo"}]}'
    planner.will_say(plan)
    file = tmp_path / "goal.yaml"
    file.write_text("goal: Say hello\n", encoding="utf-8")
    code, record = run_goal(str(file), "--project", planner.project.slug)

    assert (code, record["source"]) == (0, "planner")
