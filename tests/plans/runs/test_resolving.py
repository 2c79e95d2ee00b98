"""Steps that cannot tell what became of them, settled by somebody's word."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict

from diagnostics import clock
from diagnostics.accounts.models import Project
from failsoft.plans.execution import CallContext
from plans.models.run import Run, RunStep, WorkingItem
from plans.runs.ended_runs import UNRESOLVED, Verdict, resolve_steps
from plans.runs.records import results_of
from plans.runs.submission import RunRefusedError, submit_run
from plans.tools import registry
from tests.plans.driving import OTHER_KEY, deliver

RUNNERS = ["inline", "distributed"]
_PLAN = {
    "steps": [
        {"step_id": "look", "tool": "echo", "args": {"n": 1}},
        {"step_id": "pay", "tool": "wire", "dependencies": ["look"]},
        {"step_id": "tell", "tool": "echo", "dependencies": ["pay"]},
        {"step_id": "file", "tool": "echo", "dependencies": ["tell"]},
    ]
}


class AnyArgs(BaseModel):
    model_config = ConfigDict(extra="allow")


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The idempotency keys under which `wire` was called."""
    monkeypatch.setattr(registry, "_tools", dict(registry._tools))
    recorded: list[str] = []

    def wire(args: AnyArgs, context: CallContext) -> str:
        recorded.append(context.idempotency_key)
        return "paid"

    registry.tool("wire", AnyArgs, description="", side_effects=True, idempotent=False)(wire)
    return recorded


@pytest.fixture(params=RUNNERS)
def run(project: Project, keys: list[str], request: pytest.FixtureRequest) -> Run:
    """A run whose second step was begun by a worker that died."""
    submitted = submit_run(project.pk, _PLAN, "c", runner=request.param)
    if request.param == "distributed":
        deliver(2)
    long_ago = clock.now() - timedelta(hours=1)
    pay = RunStep.objects.filter(run=submitted, position=1)
    pay.update(state="started", starts=1, lease_until=long_ago)
    deliver()
    submitted.refresh_from_db()
    return submitted


def _states(run: Run) -> list[tuple[bool, bool, str | None]]:
    run.refresh_from_db()
    rows = results_of(run)[:-1]
    return [(row["ok"], row["skipped"], row["reason"]) for row in rows]


def test_c17_a_call_that_may_have_happened_waits_for_somebody(
    run: Run, project: Project, keys: list[str]
) -> None:
    assert run.task_status == "FAILED"
    assert keys == []
    step = RunStep.objects.get(run=run, reason__in=UNRESOLVED)
    assert (step.position, step.reason) == (1, "unknown_outcome")


def test_a_step_that_was_done_counts_as_ok_and_the_run_goes_on(run: Run, keys: list[str]) -> None:
    resolve_steps(run.pk, [1], Verdict.DONE, "alice")
    deliver()
    assert _states(run) == [
        (True, False, None),
        (True, False, 'resolved: done, as "alice" has said'),
        (True, False, None),
        (True, False, None),
    ]
    assert (run.task_status, run.contract_violations, keys) == ("COMPLETED", [], [])
    step = run.steps.get(position=1)
    assert (step.resolution, step.resolved_by) == ("done", "alice")


def test_a_step_that_was_not_done_has_failed(run: Run, keys: list[str]) -> None:
    resolve_steps(run.pk, [1], Verdict.NOT_DONE, "alice")
    deliver()
    assert _states(run)[1] == (False, False, "not_done")
    assert _states(run)[3][2] == 'dependency_skipped: "tell"; root cause "pay" (not_done)'
    assert (run.state, run.task_status, keys) == ("ended", "FAILED", [])


@pytest.mark.parametrize(("new_key", "group"), [(False, 1), (True, 2)])
def test_a_step_that_is_resumed_is_called_under_its_key(
    run: Run, keys: list[str], new_key: bool, group: int
) -> None:
    resolve_steps(run.pk, [1], Verdict.RESUME, "alice", new_key=new_key)
    deliver()
    run.refresh_from_db()
    assert run.task_status == "COMPLETED"
    assert keys == [f"{run.pk}:2:{group}"]


def test_what_waited_for_a_step_that_was_done_runs_after_the_deadline(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(deadline_at=clock.now() - timedelta(minutes=1))
    resolve_steps(run.pk, [1], Verdict.DONE, "alice")
    deliver()
    run.refresh_from_db()
    assert run.task_status == "COMPLETED"


def test_a_step_that_is_known_is_not_resolved(run: Run) -> None:
    for position, code in ((0, "step_decided"), (9, "step_not_found")):
        with pytest.raises(RunRefusedError) as refused:
            resolve_steps(run.pk, [position], Verdict.DONE, "alice")
        assert refused.value.code == code
    resolve_steps(run.pk, [1], Verdict.DONE, "alice")
    with pytest.raises(RunRefusedError) as refused:
        resolve_steps(run.pk, [1], Verdict.DONE, "alice")
    assert refused.value.code == "run_not_ended"


def test_a_run_whose_arguments_are_deleted_cannot_go_on(run: Run) -> None:
    WorkingItem.objects.all().delete()
    with pytest.raises(RunRefusedError, match="deleted"):
        resolve_steps(run.pk, [1], Verdict.RESUME, "alice")


def test_a_run_whose_key_is_replaced_cannot_go_on(run: Run, settings: Any) -> None:
    settings.FAILSOFT_WORKING_KEY = OTHER_KEY
    with pytest.raises(RunRefusedError, match="deleted"):
        resolve_steps(run.pk, [1], Verdict.RESUME, "alice")


def test_one_step_that_is_decided_leaves_the_others_undecided(run: Run) -> None:
    with pytest.raises(RunRefusedError, match="is known"):
        resolve_steps(run.pk, [1, 0], Verdict.DONE, "alice")
    assert RunStep.objects.get(run=run, position=1).reason in UNRESOLVED


def test_a_run_that_does_not_exist_is_refused(run: Run) -> None:
    with pytest.raises(RunRefusedError) as refused:
        resolve_steps(UUID(int=1), [0], Verdict.DONE, "alice")
    assert refused.value.code == "run_not_found"


def test_a_resolved_run_keeps_its_raw_values_until_it_ends_again(run: Run) -> None:
    items = WorkingItem.objects.filter(owner=f"run:{run.pk}")
    assert all(item.expires_at for item in items)
    resolve_steps(run.pk, [1], Verdict.DONE, "alice")
    assert not any(item.expires_at for item in items.all())
    deliver()
    assert all(item.expires_at for item in items.all())
