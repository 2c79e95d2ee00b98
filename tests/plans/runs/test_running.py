"""The inline runner: every step stored once, under its claim, to a summary that holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from pydantic import BaseModel, ConfigDict

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.outbound.credentials import WorkingKeyError
from diagnostics.store.models import OutboxMessage
from failsoft.plans.execution import CallContext, run_step
from failsoft.plans.summary import summarise
from plans.models.run import Run, RunStep, WorkingItem, owner_of
from plans.runs import inline, running
from plans.runs.claims import claim_poisoned, claim_run
from plans.runs.records import check_results, results_of
from plans.runs.running import execute_run, reconcile_runs
from plans.runs.submission import cancel_run, submit_run
from plans.tools import registry
from tests.plans.driving import OTHER_KEY, let_marks_pass


class AnyArgs(BaseModel):
    model_config = ConfigDict(extra="allow")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A registry with a tool `note` that writes down each of its calls."""
    monkeypatch.setattr(registry, "_tools", registry.registered_tools())
    recorded: list[dict[str, Any]] = []

    def note(args: AnyArgs) -> dict[str, Any]:
        recorded.append(args.model_dump())
        return args.model_dump()

    registry.tool("note", AnyArgs, description="Write down.")(note)
    registry.tool("wire", AnyArgs, description="", side_effects=True, idempotent=False)(note)
    return recorded


def _noted(*texts: str, tool: str = "note") -> dict[str, Any]:
    return {
        "steps": [
            {"step_id": f"step_{k}", "tool": tool, "args": {"text": text}}
            for k, text in enumerate(texts, 1)
        ]
    }


def _run(project: Project, payload: object, **options: Any) -> Run:
    run = submit_run(project.id, payload, "c", **options)
    execute_run(run.id)
    run.refresh_from_db()
    return run


def _let_the_lease_expire(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=F("lease_until") - timedelta(hours=1))


def test_s2_26_a_run_ends_with_its_rows_and_meta_last(
    project: Project, chain: dict[str, Any]
) -> None:
    run = _run(project, chain)
    rows = results_of(run)
    assert [row["step_id"] for row in rows] == ["step_1", "step_2", "step_3", "__meta__"]
    assert (run.state, run.task_status) == ("ended", "COMPLETED")
    assert list(rows[-1])[:3] == ["step_id", "ok", "skipped"]
    assert list(rows[-1]["stats"]) == ["total_steps", "ok", "skipped", "failed"]
    assert rows[1]["output"] == {"got": "hi"}
    assert run.contract_violations == []
    assert run.ended_at is not None
    assert run.lease_until is None


def test_s2_21_a_failing_tool_fails_its_step_and_no_more(project: Project) -> None:
    payload = {
        "steps": [{"step_id": "step_1", "tool": "fail"}, {"step_id": "step_2", "tool": "echo"}]
    }
    run = _run(project, payload)
    assert [row["ok"] for row in results_of(run)] == [False, True, False]
    assert run.task_status == "FAILED"


def test_s2_3_corrupted_rows_are_found_when_results_are_checked(
    project: Project, chain: dict[str, Any]
) -> None:
    run = _run(project, chain)
    assert check_results(run) == []
    RunStep.objects.filter(position=1).update(ok=False)
    assert {violation.code for violation in check_results(run)} == {"failure_without_cause"}


def test_s2_3_a_contract_violation_is_recorded_not_hidden(
    project: Project, chain: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def count_wrongly(*args: Any) -> Any:
        meta = summarise(*args)
        stats = meta.stats.model_copy(update={"ok": 7})
        return meta.model_copy(update={"stats": stats})

    monkeypatch.setattr("plans.runs.records.summarise", count_wrongly)
    run = _run(project, chain)
    assert run.state == "ended"
    assert [violation["code"] for violation in run.contract_violations] == ["stats_sum"]


def test_a_second_execution_of_an_ended_run_does_nothing(
    project: Project, calls: list[dict[str, Any]]
) -> None:
    run = _run(project, _noted("a", "b"))
    execute_run(run.id)
    assert len(calls) == 2


def test_a_run_that_somebody_holds_is_left_alone(
    project: Project, calls: list[dict[str, Any]]
) -> None:
    run = submit_run(project.id, _noted("a"), "c")
    assert claim_run(run.id) is not None
    execute_run(run.id)
    assert calls == []


def test_an_unknown_run_is_nothing_to_do(project: Project) -> None:
    execute_run(UUID(int=1))
    assert not Run.objects.exists()


def test_resuming_skips_the_steps_that_are_final(
    project: Project, calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit_run(project.id, _noted("a", "b", "c"), "c")
    with _dying_before(monkeypatch, position=1), pytest.raises(KeyboardInterrupt):
        execute_run(run.id)
    assert [step.state for step in run.steps.all()] == ["final", "pending", "pending"]
    _let_the_lease_expire(run)
    execute_run(run.id)
    run.refresh_from_db()
    assert run.task_status == "COMPLETED"
    assert [call["text"] for call in calls] == ["a", "b", "c"]


@contextmanager
def _dying_before(monkeypatch: pytest.MonkeyPatch, position: int) -> Iterator[None]:
    """Make the process 'die' when it comes to a step, with nothing tidied up."""

    def die(plan: Any, index: int, *rest: Any) -> Any:
        if index == position:
            raise KeyboardInterrupt
        return run_step(plan, index, *rest)

    with monkeypatch.context() as patch:
        patch.setattr("plans.runs.inline.run_step", die)
        yield


def test_a_resumed_run_finds_the_outputs_it_refers_to(
    project: Project, chain: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit_run(project.id, chain, "c")
    with _dying_before(monkeypatch, position=1), pytest.raises(KeyboardInterrupt):
        execute_run(run.id)
    _let_the_lease_expire(run)
    execute_run(run.id)
    assert results_of(Run.objects.get())[1]["output"] == {"got": "hi"}


def test_a_worker_that_lost_its_lease_writes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit_run(project.id, _noted("a"), "c")

    def lose_the_lease(*args: Any) -> Any:
        executed = run_step(*args)
        Run.objects.update(fencing_token=F("fencing_token") + 1)
        return executed

    monkeypatch.setattr("plans.runs.inline.run_step", lose_the_lease)
    execute_run(run.id)
    assert RunStep.objects.get().state != "final"
    assert Run.objects.get().state == "running"


def test_a_call_that_may_have_happened_is_not_made_twice(
    project: Project, calls: list[dict[str, Any]]
) -> None:
    run = submit_run(project.id, _noted("pay", tool="wire"), "c")
    RunStep.objects.update(state=RunStep.State.STARTED)
    execute_run(run.id)
    step = RunStep.objects.get()
    assert (calls, step.ok, step.reason) == ([], False, "unknown_outcome")


def test_a_call_that_changes_nothing_is_made_again(
    project: Project, calls: list[dict[str, Any]]
) -> None:
    run = submit_run(project.id, _noted("look"), "c")
    RunStep.objects.update(state=RunStep.State.STARTED)
    execute_run(run.id)
    assert len(calls) == 1
    assert RunStep.objects.get().ok


def test_s2_30_a_cancelled_run_is_partial(project: Project, calls: list[dict[str, Any]]) -> None:
    run = submit_run(project.id, _noted("a", "b"), "c")
    cancel_run(project.id, run.id)
    execute_run(run.id)
    run.refresh_from_db()
    assert (run.task_status, calls) == ("PARTIAL", [])
    assert {row["reason"] for row in results_of(run)[:-1]} == {"cancelled"}


def test_a_run_past_its_deadline_calls_no_tool(
    project: Project, calls: list[dict[str, Any]]
) -> None:
    run = _run(project, _noted("a"), deadline_at=clock.now() - timedelta(seconds=1))
    assert (run.task_status, calls) == ("PARTIAL", [])
    assert results_of(run)[0]["reason"] == "deadline_reached"


def test_the_submitter_is_told_once_when_the_run_has_ended(
    project: Project, chain: dict[str, Any]
) -> None:
    run = _run(project, chain, on_end_task="agents.tasks.run_goal", on_end_args={"goal_id": 5})
    execute_run(run.id)
    message = OutboxMessage.objects.get(task="agents.tasks.run_goal")
    assert (message.kwargs, message.queue) == ({"goal_id": 5}, "plan")


def test_raw_values_get_an_end_when_the_run_has_ended(
    project: Project, chain: dict[str, Any]
) -> None:
    run = _run(project, chain)
    items = WorkingItem.objects.filter(owner=owner_of(run))
    assert {item.name for item in items} == {"payload", "output:0"}
    assert all(item.expires_at for item in items)


def test_a_run_whose_payload_is_gone_ends_with_a_reason(
    project: Project, chain: dict[str, Any]
) -> None:
    run = submit_run(project.id, chain, "c")
    WorkingItem.objects.all().delete()
    execute_run(run.id)
    run.refresh_from_db()
    assert (run.state, run.task_status) == ("ended", "PARTIAL")
    assert results_of(run)[0]["reason"] == "payload_lost"
    assert check_results(run) == []


def test_a_long_run_is_handed_to_the_next_message(
    project: Project, calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit_run(project.id, _noted("a", "b"), "c")
    OutboxMessage.objects.all().delete()
    with monkeypatch.context() as patch:
        patch.setattr(inline, "_SLICE_SECONDS", -1)
        execute_run(run.id)
    run.refresh_from_db()
    assert (run.state, run.starts) == ("queued", 0)
    assert OutboxMessage.objects.count() == 1
    execute_run(run.id)
    run.refresh_from_db()
    assert run.task_status == "COMPLETED"


def test_a_run_that_kills_its_worker_three_times_ends_as_poison(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit_run(project.id, _noted("fine", "deadly"), "c", on_end_task="agents.tasks.run_goal")
    deaths = _die_inside_tool(monkeypatch, "deadly")
    for _ in range(10):
        try:
            execute_run(run.id)
        except KeyboardInterrupt:
            _let_the_lease_expire(run)
            reconcile_runs()
    run.refresh_from_db()
    assert len(deaths) == 3
    assert run.state == "poison"
    assert run.task_status == "FAILED"
    assert [row["reason"] for row in results_of(run)[:-1]] == [None, "poison"]
    assert check_results(run) == []
    assert OutboxMessage.objects.filter(task="agents.tasks.run_goal").count() == 1


def test_the_reconciler_calls_no_tool_of_a_run_that_killed_its_workers(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit_run(project.id, _noted("deadly", "fine"), "c")
    _die_inside_tool(monkeypatch, "deadly")
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            execute_run(run.id)
        _let_the_lease_expire(run)
    reconcile_runs()
    run.refresh_from_db()
    states = list(run.steps.values_list("state", "reason"))
    assert (run.state, states) == ("queued", [("final", "poison"), ("pending", None)])
    execute_run(run.id)
    run.refresh_from_db()
    assert run.state == "poison"
    assert [row["reason"] for row in results_of(run)[:-1]] == ["poison", None]


def test_a_run_whose_key_is_gone_ends_after_three_workers_without_it(
    project: Project, settings: Any
) -> None:
    run = submit_run(project.id, _noted("a"), "c")
    settings.FAILSOFT_WORKING_KEY = OTHER_KEY
    for _ in range(3):
        with pytest.raises(WorkingKeyError):
            execute_run(run.id)
        _let_the_lease_expire(run)
        reconcile_runs()
    run.refresh_from_db()
    assert (run.state, run.task_status) == ("ended", "PARTIAL")
    assert results_of(run)[0]["reason"] == "payload_lost"


def _die_inside_tool(monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    deaths: list[str] = []
    original = registry.call_tool

    def die(name: str, args: dict[str, Any], context: CallContext) -> object:
        if args.get("text") == text:
            deaths.append(text)
            raise KeyboardInterrupt
        return original("echo", args, context)

    monkeypatch.setattr(inline, "call_tool", die)
    return deaths


def test_the_reconciler_leaves_runs_alone_that_are_under_way(
    project: Project, chain: dict[str, Any]
) -> None:
    run = submit_run(project.id, chain, "c")
    assert reconcile_runs() == 0
    claim_run(run.id)
    assert reconcile_runs() == 0


def test_the_reconciler_queues_a_run_whose_message_was_lost(
    project: Project, chain: dict[str, Any]
) -> None:
    run = submit_run(project.id, chain, "c")
    OutboxMessage.objects.all().delete()
    _let_the_lease_expire(run)
    assert reconcile_runs() == 0
    let_marks_pass()
    assert reconcile_runs() == 1
    assert OutboxMessage.objects.get().kwargs == {"run_id": str(run.id)}
    assert reconcile_runs() == 0


def test_only_one_of_two_workers_gets_a_run(project: Project) -> None:
    run = submit_run(project.id, _noted("a"), "c")
    assert claim_run(run.id) is not None
    assert claim_run(run.id) is None


def test_a_run_in_good_health_is_not_ended_as_poison(project: Project) -> None:
    run = submit_run(project.id, _noted("a"), "c")
    claim_run(run.id)
    assert claim_poisoned(run.id) is None
    running.end_poisoned(run.id)
    assert Run.objects.get().state == "running"
