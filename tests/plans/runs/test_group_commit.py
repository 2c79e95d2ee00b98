"""The inline runner as workers have it: threads, and a writer with its own connection."""

import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import DataError
from django.db.models import F
from pydantic import BaseModel, ConfigDict

from diagnostics.accounts.models import Project
from failsoft.plans.execution import CallContext
from plans.models.run import Run, RunStep
from plans.runs import running
from plans.runs.claims import claim_run
from plans.runs.group_commit import STORE_STEPS
from plans.runs.records import check_results, results_of
from plans.runs.submission import cancel_run, submit_run
from plans.tools import registry
from tests.kept_threads import end_kept_threads

pytestmark = pytest.mark.django_db(transaction=True)


class AnyArgs(BaseModel):
    model_config = ConfigDict(extra="allow")


@pytest.fixture
def project(transactional_db: None) -> Iterator[Project]:
    """A project that every thread can see."""
    yield Project.objects.create(slug="threads", name="Threads")
    end_kept_threads()


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of the test's own."""
    monkeypatch.setattr(registry, "_tools", dict(registry._tools))


def _wide(tool: str, count: int) -> dict[str, Any]:
    steps = [{"step_id": f"s{k}", "tool": tool, "args": {"k": k}} for k in range(count)]
    last = {"step_id": "last", "tool": "echo", "args": {"first": "$s0.output.k"}}
    return {"steps": [*steps, last]}


def _execute(run: Run) -> Run:
    running.execute_run(run.pk)
    run.refresh_from_db()
    return run


def test_ready_steps_run_beside_each_other(project: Project, tools: None) -> None:
    together = threading.Barrier(3, timeout=20)

    def meet(args: AnyArgs) -> dict[str, Any]:
        together.wait()
        return args.model_dump()

    registry.tool("meet", AnyArgs, description="")(meet)
    run = _execute(submit_run(project.pk, _wide("meet", 3), "c"))
    assert run.task_status == "COMPLETED"
    assert results_of(run)[3]["output"] == {"first": 0}
    assert check_results(run) == []


def test_hundreds_of_results_are_all_stored(project: Project, tools: None) -> None:
    run = _execute(submit_run(project.pk, _wide("echo", 500), "c"))
    assert (run.task_status, (run.meta or {})["stats"]["ok"]) == ("COMPLETED", 501)
    assert run.steps.filter(state="final", ok=True, ended_at__isnull=False).count() == 501


def test_a_start_with_side_effects_is_durable_before_the_call(
    project: Project, tools: None
) -> None:
    states: list[tuple[int, str]] = []

    def look(args: AnyArgs, context: CallContext) -> None:
        rows = RunStep.objects.filter(run_id=context.run_id).order_by("position")
        states.extend(rows.values_list("position", "state"))

    registry.tool("look", AnyArgs, description="", side_effects=True)(look)
    plan = {
        "steps": [
            {"step_id": "a", "tool": "echo"},
            {"step_id": "b", "tool": "look", "dependencies": ["a"]},
        ]
    }
    _execute(submit_run(project.pk, plan, "c"))
    assert states == [(0, "final"), (1, "started")]


def test_cancelling_reaches_a_tool_that_is_being_called(
    project: Project, tools: None, settings: Any
) -> None:
    settings.FAILSOFT_RUN_LEASE_SECONDS = 2

    def wait(args: AnyArgs, context: CallContext) -> str:
        cancel_run(project.pk, run.pk)
        give_up_at = time.monotonic() + 20
        while not context.is_cancelled() and time.monotonic() < give_up_at:
            time.sleep(0.02)
        return "heard" if context.is_cancelled() else "deaf"

    registry.tool("wait", AnyArgs, description="")(wait)
    plan = {
        "steps": [
            {"step_id": "a", "tool": "wait"},
            {"step_id": "b", "tool": "echo", "dependencies": ["a"]},
        ]
    }
    run = submit_run(project.pk, plan, "c")
    _execute(run)
    rows = results_of(run)
    assert (rows[0]["output"], rows[1]["reason"]) == ("heard", "cancelled")
    assert run.task_status == "PARTIAL"


def test_c1_a_worker_that_lost_its_lease_stores_nothing_more(project: Project, tools: None) -> None:
    def lose(args: AnyArgs) -> None:
        Run.objects.update(fencing_token=F("fencing_token") + 1)

    registry.tool("lose", AnyArgs, description="")(lose)
    run = _execute(submit_run(project.pk, _wide("lose", 1), "c"))
    assert run.state == "running"
    assert not run.steps.filter(state="final").exists()


def test_a_lease_is_renewed_while_a_tool_takes_longer_than_it(
    project: Project, tools: None, settings: Any
) -> None:
    settings.FAILSOFT_RUN_LEASE_SECONDS = 0.6
    free: list[object] = []

    def wait(args: AnyArgs) -> None:
        time.sleep(1.2)
        free.append(claim_run(run.pk))

    registry.tool("wait", AnyArgs, description="")(wait)
    run = submit_run(project.pk, {"steps": [{"step_id": "a", "tool": "wait"}]}, "c")
    _execute(run)
    assert (free, run.task_status) == ([None], "COMPLETED")


def test_what_happened_before_a_crash_of_the_runner_is_kept(project: Project, tools: None) -> None:
    def stop(args: AnyArgs) -> None:
        raise KeyboardInterrupt

    registry.tool("stop", AnyArgs, description="")(stop)
    plan = {
        "steps": [
            {"step_id": "a", "tool": "echo"},
            {"step_id": "b", "tool": "stop", "dependencies": ["a"]},
        ]
    }
    run = submit_run(project.pk, plan, "c")
    with pytest.raises(KeyboardInterrupt):
        running.execute_run(run.pk)
    assert list(run.steps.values_list("state", flat=True)) == ["final", "started"]


def test_a_result_is_durable_while_another_tool_still_runs(project: Project, tools: None) -> None:
    was_stored: list[bool] = []

    def wait(args: AnyArgs, context: CallContext) -> None:
        give_up_at = time.monotonic() + 20
        quick = RunStep.objects.filter(run_id=context.run_id, position=1, state="final")
        while not quick.exists() and time.monotonic() < give_up_at:
            time.sleep(0.02)
        was_stored.append(quick.exists())

    registry.tool("wait", AnyArgs, description="", side_effects=True)(wait)
    registry.tool("quick", AnyArgs, description="", side_effects=True)(lambda args: 1)
    plan = {"steps": [{"step_id": "a", "tool": "wait"}, {"step_id": "b", "tool": "quick"}]}
    run = _execute(submit_run(project.pk, plan, "c"))
    assert (was_stored, run.task_status) == ([True], "COMPLETED")


def test_every_start_of_many_threads_is_durable_before_its_call(
    project: Project, tools: None
) -> None:
    states: list[str] = []

    def look(args: AnyArgs, context: CallContext) -> dict[str, Any]:
        mine = RunStep.objects.filter(run_id=context.run_id, step_id=context.step_id)
        states.extend(mine.values_list("state", flat=True))
        return args.model_dump()

    registry.tool("look", AnyArgs, description="", side_effects=True)(look)
    run = _execute(submit_run(project.pk, _wide("look", 100), "c"))
    assert (set(states), len(states)) == ({"started"}, 100)
    assert run.task_status == "COMPLETED"


def test_an_error_of_the_database_comes_as_djangos(transactional_db: None) -> None:
    texts = {"run": str(uuid4()), "token": "1", "rows": "no list"}
    with pytest.raises(DataError):
        STORE_STEPS.run(texts)
    assert STORE_STEPS.run(texts | {"rows": "[]"}) is None
