"""Running a plan again, from its beginning or from one of its steps."""

from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict

from diagnostics.accounts.models import Project
from plans.models.run import Run, WorkingItem
from plans.runs.ended_runs import rerun
from plans.runs.records import results_of
from plans.runs.submission import RunRefusedError, submit_run
from plans.tools import registry
from tests.plans.driving import deliver, run_through

RUNNERS = ["inline", "distributed"]
PLAN = {
    "steps": [
        {"step_id": "a", "tool": "note", "args": {"text": "a"}},
        {"step_id": "b", "tool": "note", "args": {"text": "$a.output.text"}},
        {"step_id": "c", "tool": "flaky", "args": {"text": "$a.output.text"}},
        {"step_id": "d", "tool": "note", "args": {"text": "$c.output.text"}},
    ]
}


class TextArgs(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = ""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of all calls; `flaky` fails the first time."""
    monkeypatch.setattr(registry, "_tools", dict(registry._tools))
    recorded: list[str] = []

    def note(args: TextArgs) -> dict[str, Any]:
        recorded.append(f"note {args.text}")
        return {"text": args.text}

    def flaky(args: TextArgs) -> dict[str, Any]:
        recorded.append("flaky")
        if recorded.count("flaky") == 1:
            raise ValueError("the first time")
        return {"text": "late"}

    registry.tool("note", TextArgs, description="")(note)
    registry.tool("flaky", TextArgs, description="")(flaky)
    return recorded


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_rerun_from_a_step_keeps_the_results_before_it(
    project: Project, calls: list[str], runner: str
) -> None:
    first = run_through(project.pk, PLAN, runner)
    assert first.task_status == "FAILED"
    calls[:] = ["flaky"]
    second = rerun(first.pk, 2, by="alice")
    deliver()
    second.refresh_from_db()
    assert calls == ["flaky", "flaky", "note late"]
    assert second.task_status == "COMPLETED"
    assert results_of(second)[:2] == results_of(first)[:2]
    assert (second.rerun_of_id, second.rerun_from) == (first.pk, 2)
    assert (second.runner, second.requested_by) == (runner, "alice")
    first.refresh_from_db()
    assert first.task_status == "FAILED"


def test_a_rerun_without_a_step_runs_everything(project: Project, calls: list[str]) -> None:
    first = run_through(project.pk, PLAN, "inline")
    second = rerun(first.pk)
    deliver()
    second.refresh_from_db()
    assert (second.task_status, len(calls)) == ("COMPLETED", 3 + 4)


def test_a_step_that_waits_for_one_that_is_run_is_run_too(
    project: Project, calls: list[str]
) -> None:
    plan = {
        "steps": [
            {"step_id": "x", "tool": "note", "dependencies": ["y"]},
            {"step_id": "y", "tool": "note"},
        ]
    }
    first = run_through(project.pk, plan, "inline")
    rerun(first.pk, 1)
    deliver()
    assert len(calls) == 4


def test_a_rerun_says_clearly_why_it_cannot_be(project: Project, calls: list[str]) -> None:
    with pytest.raises(RunRefusedError) as refused:
        rerun(UUID(int=1))
    assert refused.value.code == "run_not_found"
    waiting = submit_run(project.pk, PLAN, "c")
    with pytest.raises(RunRefusedError) as refused:
        rerun(waiting.pk)
    assert refused.value.code == "run_not_ended"
    deliver()
    with pytest.raises(RunRefusedError) as refused:
        rerun(waiting.pk, 4)
    assert refused.value.code == "step_not_found"
    WorkingItem.objects.filter(name__startswith="output:").delete()
    with pytest.raises(RunRefusedError, match="from the start"):
        rerun(waiting.pk, 2)
    WorkingItem.objects.all().delete()
    with pytest.raises(RunRefusedError) as refused:
        rerun(waiting.pk)
    assert refused.value.code == "values_deleted"
    assert Run.objects.count() == 1
