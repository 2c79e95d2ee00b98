"""A worker of another release leaves what it cannot run, and says why."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from pydantic import BaseModel

from diagnostics import clock
from diagnostics.accounts.models import Project
from failsoft import VERSION
from plans.models.run import Run
from plans.runs.claims import STUCK_AFTER
from plans.runs.running import execute_run, reconcile_runs
from plans.runs.submission import cancel_run, submit_run
from plans.tools import registry
from tests.plans.driving import deliver, let_marks_pass

PLAN = {"steps": [{"step_id": "a", "tool": "greet"}]}


class OldArgs(BaseModel):
    name: str = "you"


class NewArgs(BaseModel):
    name: str = "you"
    loudly: bool = False


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The registry of this worker, with the tool that the plan was made for."""
    tools = dict(registry._tools)
    monkeypatch.setattr(registry, "_tools", tools)
    registry.tool("greet", OldArgs, description="")(lambda args: args.name)
    return tools


def _change(tools: dict[str, Any]) -> None:
    del tools["greet"]
    registry.tool("greet", NewArgs, description="")(lambda args: args.name)


def test_a_run_remembers_what_it_began_with(project: Project, tools: dict[str, Any]) -> None:
    run = submit_run(project.pk, PLAN, "c")
    assert run.release == VERSION
    assert list(run.tool_digests) == ["greet"]


@pytest.mark.parametrize("runner", ["inline", "distributed"])
def test_a_worker_whose_tool_differs_leaves_the_run_with_a_reason(
    project: Project, tools: dict[str, Any], runner: str
) -> None:
    run = submit_run(project.pk, PLAN, "c", runner=runner)
    kept = tools["greet"]
    _change(tools)
    deliver()
    run.refresh_from_db()
    assert (run.state, run.refusals, run.starts) == ("queued", 1, 0)
    assert 'tool "greet" has other arguments' in run.refused_reason
    assert run.lease_until is not None
    assert run.lease_until > clock.now()
    assert reconcile_runs() == 0
    tools["greet"] = kept
    execute_run(run.pk)
    deliver()
    run.refresh_from_db()
    assert (run.task_status, run.refused_reason) == ("COMPLETED", "")


def test_steps_under_way_are_left_too(project: Project, tools: dict[str, Any]) -> None:
    run = submit_run(project.pk, PLAN, "c", runner="distributed")
    deliver(1)
    del tools["greet"]
    deliver()
    run.refresh_from_db()
    assert (run.state, run.steps.get().state) == ("running", "pending")
    assert "is not registered here" in run.refused_reason


def test_another_major_version_of_the_contract_is_refused(
    project: Project, tools: dict[str, Any]
) -> None:
    run = submit_run(project.pk, PLAN, "c")
    Run.objects.update(contract_version="9.0.0")
    execute_run(run.pk)
    assert "contract 9.0.0 is wanted" in Run.objects.get().refused_reason


def test_pauses_grow_and_after_an_hour_the_run_says_that_nobody_fits(
    project: Project, tools: dict[str, Any]
) -> None:
    run = submit_run(project.pk, PLAN, "c")
    _change(tools)
    pauses = []
    for _ in range(8):
        execute_run(run.pk)
        run.refresh_from_db()
        assert run.lease_until is not None
        pauses.append(round((run.lease_until - clock.now()).total_seconds()))
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300]
    Run.objects.update(first_refused_at=F("first_refused_at") - STUCK_AFTER)
    execute_run(run.pk)
    assert Run.objects.get().refused_reason.startswith("No worker fits for an hour")
    assert Run.objects.get().state == "queued"


def test_a_run_that_nobody_takes_can_be_cancelled(project: Project, tools: dict[str, Any]) -> None:
    run = submit_run(project.pk, PLAN, "c")
    del tools["greet"]
    execute_run(run.pk)
    cancel_run(project.pk, run.pk)
    Run.objects.update(lease_until=clock.now() - timedelta(seconds=1))
    let_marks_pass()
    reconcile_runs()
    deliver()
    assert Run.objects.get().task_status == "PARTIAL"
