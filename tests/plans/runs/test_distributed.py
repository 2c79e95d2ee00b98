"""The distributed runner: every step claimed by one worker, settled under the run's lock."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from pydantic import BaseModel, ConfigDict

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.store.models import OutboxMessage
from failsoft.plans.execution import CallContext
from plans.models.run import Run, RunStep, WorkingItem
from plans.runs import distributed
from plans.runs.claims import lease
from plans.runs.loading import forget
from plans.runs.records import check_results, results_of
from plans.runs.running import reconcile_runs
from plans.runs.submission import STEPS_TASK, cancel_run, submit_run
from plans.tools import registry
from tests.plans.driving import OTHER_KEY, deliver, let_marks_pass, receive, run_through


class AnyArgs(BaseModel):
    model_config = ConfigDict(extra="allow")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[CallContext]:
    """The contexts of all calls of `note`, and of `wire`, which cannot be repeated."""
    monkeypatch.setattr(registry, "_tools", dict(registry._tools))
    contexts: list[CallContext] = []

    def note(args: AnyArgs, context: CallContext) -> dict[str, Any]:
        contexts.append(context)
        return args.model_dump()

    registry.tool("note", AnyArgs, description="")(note)
    registry.tool("wire", AnyArgs, description="", side_effects=True, idempotent=False)(note)
    return contexts


def _plan(*tools: str, chained: bool = False) -> dict[str, Any]:
    return {
        "steps": [
            {
                "step_id": f"step_{number}",
                "tool": tool,
                "dependencies": [f"step_{number - 1}"] if chained and number > 1 else [],
            }
            for number, tool in enumerate(tools, 1)
        ]
    }


def _begun(project: Project, payload: object, **options: Any) -> Run:
    run = submit_run(project.pk, payload, "c", runner="distributed", **options)
    deliver(1)
    run.refresh_from_db()
    return run


def _messages() -> list[list[int]]:
    waiting = OutboxMessage.objects.filter(task=STEPS_TASK).order_by("id")
    return [message.kwargs["positions"] for message in waiting]


def _shift_clock(seconds: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL failsoft.clock_shift = %s", [f"{seconds} seconds"])


def test_each_ready_step_is_a_message_of_its_own(
    project: Project, calls: list[CallContext]
) -> None:
    plan = _plan("note", "note", "note")
    plan["steps"][2]["dependencies"] = ["step_1", "step_2"]
    run = _begun(project, plan)
    assert (run.state, run.open_steps, run.lease_until) == ("running", 3, None)
    assert _messages() == [[0], [1]]
    deliver(1)
    assert _messages() == [[1]]
    deliver(1)
    assert _messages() == [[2]]
    deliver()
    run.refresh_from_db()
    assert (run.state, run.task_status, run.open_steps) == ("ended", "COMPLETED", 0)
    assert [context.step_id for context in calls] == ["step_1", "step_2", "step_3"]
    assert calls[0].idempotency_key == f"{run.pk}:1:1"


def test_very_many_ready_steps_share_messages_unless_they_cannot_be_repeated(
    project: Project, calls: list[CallContext]
) -> None:
    run = _begun(project, _plan(*["note"] * 200, "wire"))
    sizes = [len(positions) for positions in _messages()]
    assert sizes[0] == 1
    assert max(sizes) == 4
    deliver()
    run.refresh_from_db()
    assert (run.task_status, len(calls)) == ("COMPLETED", 201)


def test_c1_a_message_that_comes_twice_calls_the_tool_once(
    project: Project, calls: list[CallContext]
) -> None:
    _begun(project, _plan("note", "note"))
    message = OutboxMessage.objects.filter(task=STEPS_TASK).first()
    assert message is not None
    receive(message)
    receive(message)
    assert len(calls) == 1


def test_c1_a_late_result_of_a_step_that_was_taken_over_is_discarded(
    project: Project, monkeypatch: pytest.MonkeyPatch, calls: list[CallContext]
) -> None:
    run = _begun(project, _plan("note"))

    def lose(*args: Any) -> object:
        RunStep.objects.update(fencing_token=9)
        return "late"

    monkeypatch.setattr(distributed, "call_tool", lose)
    deliver()
    assert RunStep.objects.get().state == "started"
    run.refresh_from_db()
    assert run.state == "running"


def test_c3_and_c15_a_silent_step_is_taken_up_by_the_databases_clock(
    project: Project, calls: list[CallContext]
) -> None:
    run = _begun(project, _plan("note"))
    OutboxMessage.objects.all().delete()
    assert reconcile_runs() == 0
    _shift_clock(lease().total_seconds() + 5)
    assert reconcile_runs() == 0
    let_marks_pass()
    assert reconcile_runs() == 1
    assert _messages() == [[0]]
    assert reconcile_runs() == 0
    deliver()
    run.refresh_from_db()
    assert (run.task_status, len(calls)) == ("COMPLETED", 1)


@pytest.mark.parametrize(
    ("tool", "reason", "count"), [("note", None, 1), ("wire", "unknown_outcome", 0)]
)
def test_c3_a_step_whose_worker_died_is_run_again_if_it_may_be(
    project: Project, calls: list[CallContext], tool: str, reason: str | None, count: int
) -> None:
    run = _begun(project, _plan(tool))
    OutboxMessage.objects.all().delete()
    long_ago = clock.now() - timedelta(hours=1)
    RunStep.objects.update(state="started", starts=1, lease_until=long_ago)
    assert reconcile_runs() == 1
    deliver()
    run.refresh_from_db()
    assert (run.state, results_of(run)[0]["reason"]) == ("ended", reason)
    assert [context.attempt for context in calls] == [2] * count


def test_a_run_whose_key_is_gone_keeps_no_other_waiting_and_can_be_cancelled(
    project: Project, calls: list[CallContext], settings: Any
) -> None:
    lost = _begun(project, _plan("note"))
    OutboxMessage.objects.all().delete()
    fine = _begun(project, _plan("note"))
    OutboxMessage.objects.all().delete()
    forget(lost.pk)
    key, settings.FAILSOFT_WORKING_KEY = settings.FAILSOFT_WORKING_KEY, OTHER_KEY
    long_ago = clock.now() - timedelta(hours=1)
    RunStep.objects.update(lease_until=long_ago)
    RunStep.objects.filter(run=lost).update(lease_until=long_ago - timedelta(hours=1))
    let_marks_pass()
    assert reconcile_runs() == 2
    cancel_run(project.pk, lost.pk)
    deliver()
    settings.FAILSOFT_WORKING_KEY = key
    lost.refresh_from_db()
    fine.refresh_from_db()
    assert (lost.state, fine.task_status, len(calls)) == ("ended", "COMPLETED", 1)
    assert results_of(lost)[0]["reason"] == "payload_lost"


def test_c4_three_starts_without_a_result_are_one_too_many(
    project: Project, calls: list[CallContext]
) -> None:
    plan = _plan("note", "note", "note")
    plan["steps"][1]["dependencies"] = ["step_1"]
    run = _begun(project, plan)
    OutboxMessage.objects.all().delete()
    long_ago = clock.now() - timedelta(hours=1)
    RunStep.objects.filter(position=0).update(state="started", starts=3, lease_until=long_ago)
    RunStep.objects.filter(position=2).update(lease_until=long_ago)
    let_marks_pass()
    reconcile_runs()
    deliver()
    run.refresh_from_db()
    assert (run.state, run.task_status, len(calls)) == ("poison", "FAILED", 1)
    assert [row["reason"] for row in results_of(run)[:-1]] == [
        "poison",
        'dependency_failed: "step_1" (poison)',
        None,
    ]
    assert check_results(run) == []


def test_a_cancelled_run_settles_what_nobody_has_begun(
    project: Project, calls: list[CallContext]
) -> None:
    run = _begun(project, _plan("note", "note", "note", chained=True))
    deliver(1)
    OutboxMessage.objects.all().delete()
    cancel_run(project.pk, run.pk)
    deliver()
    run.refresh_from_db()
    assert (run.task_status, len(calls)) == ("PARTIAL", 1)
    assert [row["reason"] for row in results_of(run)[:-1]] == [
        None,
        "cancelled",
        'dependency_skipped: "step_2"; root cause "step_2" (cancelled)',
    ]


def test_a_run_whose_payload_is_gone_ends_with_a_reason(
    project: Project, calls: list[CallContext]
) -> None:
    run = _begun(project, _plan("note", "note"))
    WorkingItem.objects.all().delete()
    forget(run.pk)
    deliver()
    run.refresh_from_db()
    assert (run.task_status, calls) == ("PARTIAL", [])
    assert results_of(run)[0]["reason"] == "payload_lost"


def test_a_chain_of_skips_is_settled_at_once(project: Project, calls: list[CallContext]) -> None:
    run = run_through(project.pk, _plan("fail", *["note"] * 300, chained=True), "distributed")
    assert (run.task_status, calls) == ("FAILED", [])
    assert 'root cause "step_1"' in results_of(run)[300]["reason"]


@pytest.mark.slow
def test_a_step_that_takes_long_hands_the_rest_of_its_message_on(
    project: Project, calls: list[CallContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _begun(project, _plan(*["note"] * 130))
    monkeypatch.setattr(distributed, "_SLICE_SECONDS", -1)
    while deliver(1):
        pass
    run.refresh_from_db()
    assert (run.task_status, len(calls)) == ("COMPLETED", 130)
