"""Submitting: nothing invalid is stored, everything stored is queued and redacted."""

import random
from typing import Any

import pytest
from django.db import transaction

from diagnostics.accounts.models import Project
from diagnostics.store.models import OutboxMessage
from failsoft.plans.contract import CONTRACT_VERSION
from plans.models.run import Run, RunStep
from plans.runs import working_store
from plans.runs.submission import EXECUTE_TASK, InvalidPlanError, cancel_run, submit_run


def test_a_valid_plan_becomes_a_row_its_steps_and_one_message(
    project: Project, chain: dict[str, Any]
) -> None:
    run = submit_run(project.id, chain, "c-1", cycle=2)
    run.refresh_from_db()
    assert (run.state, run.correlation_id, run.cycle) == ("queued", "c-1", 2)
    steps = list(run.steps.values_list("step_id", "state", "dependencies"))
    assert steps == [
        ("step_1", "pending", []),
        ("step_2", "pending", ["step_1"]),
        ("step_3", "pending", ["step_2"]),
    ]
    message = OutboxMessage.objects.get()
    assert (message.task, message.queue) == (EXECUTE_TASK, "steps")
    assert message.kwargs == {"run_id": str(run.id)}


def test_s2_45_a_run_pins_the_version_of_the_contract(
    project: Project, chain: dict[str, Any]
) -> None:
    assert submit_run(project.id, chain, "c").contract_version == CONTRACT_VERSION


@pytest.mark.parametrize("payload", [None, [], {}, {"steps": []}, {"steps": [5]}])
def test_s2_1_an_invalid_plan_is_refused_and_nothing_is_stored(
    project: Project, payload: object
) -> None:
    with pytest.raises(InvalidPlanError) as refused:
        submit_run(project.id, payload, "c")
    assert refused.value.violations
    assert not Run.objects.exists()
    assert not OutboxMessage.objects.exists()


def test_a_plan_larger_than_1_mib_is_refused(project: Project) -> None:
    steps = [
        {"step_id": f"step_{k}", "tool": "echo", "args": {"text": "x" * 60_000}}
        for k in range(1, 20)
    ]
    with pytest.raises(InvalidPlanError) as refused:
        submit_run(project.id, {"steps": steps}, "c")
    assert [violation.code for violation in refused.value.violations] == ["too_large"]


def test_what_is_shown_is_redacted_and_what_is_run_is_not(project: Project) -> None:
    token = "ghp_" + "".join(random.Random(7).choices("abcdefghij0123456789", k=36))
    payload = {
        "steps": [
            {
                "step_id": "step_1",
                "title": f"use {token}",
                "tool": {"name": "echo", "args": {"token": token}},
            }
        ]
    }
    run = submit_run(project.id, payload, "c")
    step = RunStep.objects.get()
    assert token not in f"{run.payload} {step.title}"
    assert "[REDACTED:" in step.title
    stored = working_store.get(run, "payload")
    assert stored == payload


def test_an_id_or_argument_that_postgresql_cannot_store_is_cleaned(project: Project) -> None:
    payload = {"steps": [{"step_id": "a", "tool": "echo", "args": {"x": "\0\ud800"}}]}
    run = submit_run(project.id, payload, "c")
    run.refresh_from_db()
    assert run.payload["steps"][0]["args"]["x"] == "\ufffd\ufffd"


def test_row_and_message_share_the_callers_transaction(
    project: Project, chain: dict[str, Any]
) -> None:
    with transaction.atomic():
        submit_run(project.id, chain, "c")
        transaction.set_rollback(True)
    assert not Run.objects.exists()
    assert not OutboxMessage.objects.exists()


def test_a_run_of_another_project_cannot_be_cancelled(
    project: Project, chain: dict[str, Any]
) -> None:
    run = submit_run(project.id, chain, "c")
    assert not cancel_run(project.id + 1, run.id)
    assert cancel_run(project.id, run.id)
    run.refresh_from_db()
    assert run.cancel_requested_at is not None


def test_an_ended_run_cannot_be_cancelled(project: Project, chain: dict[str, Any]) -> None:
    run = submit_run(project.id, chain, "c")
    Run.objects.update(state=Run.State.ENDED, task_status="COMPLETED")
    assert not cancel_run(project.id, run.id)
