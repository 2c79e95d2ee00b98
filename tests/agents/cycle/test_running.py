"""Goals through the cycle: loops, ends, cancelling, poison, stand-ins."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from agents.cycle.running import reconcile_goals, run_goal
from agents.goals.claims import claim_goal
from agents.goals.models import Goal
from agents.goals.submission import AlreadyEndedError, NotWaitingError, answer_goal, cancel_goal
from diagnostics.clock import DatabaseNow
from diagnostics.store.models import OutboxMessage
from plans.models.run import Run, WorkingItem
from plans.runs.submission import submit_run
from tests.agents.conftest import ASK, CALL_ECHO, FINISH, PLAN, Planner, events_named, work_off
from tests.plans.driving import let_marks_pass

FAILING = PLAN.replace("echo", "fail")


def pass_time(goal: Goal, seconds: float) -> None:
    """Let the lease of a goal be so much older."""
    Goal.objects.filter(pk=goal.pk).update(
        lease_until=F("lease_until") - timedelta(seconds=seconds)
    )


def test_a_plan_that_completes_completes_the_goal(planner: Planner) -> None:
    record = planner.run(PLAN, mode="plan")

    assert (record["status"], record["outcome"]) == ("completed", "ok_first")
    assert record["pdca_phase"] == "act"
    assert record["results"][-1]["task_status"] == "COMPLETED"
    assert record["user_text"]


def test_the_next_cycle_is_told_what_the_last_one_did(planner: Planner) -> None:
    record = planner.run(FAILING, PLAN, mode="plan")

    assert record["status"] == "completed"
    assert record["cycle"] == 2
    assert "cycle 1, step_1 (fail): failed" in planner.prompts[1]


@pytest.mark.parametrize("cycles", [1, 2, 3])
def test_the_cycles_are_bounded_and_the_text_says_failed(planner: Planner, cycles: int) -> None:
    record = planner.run({"text": FAILING, "repeat": True}, mode="plan", max_iterations=cycles)

    assert planner.calls == cycles
    assert record["status"] == "failed"
    assert "failed" in record["user_text"]
    assert "paused" not in record["user_text"]
    assert record["execution_eval"]["task_status"] == "FAILED"
    assert record["outcome"] == "ok_first"
    assert events_named(record, "degraded") == []


def test_a_stand_in_plan_is_degraded_and_never_a_success(planner: Planner) -> None:
    record = planner.run("no", "no", mode="plan", retry={"use_stub_fallback": True})

    assert (record["source"], record["outcome"]) == ("stub", "stubbed")
    assert record["status"] == "completed"
    assert record["results"][-1]["task_status"] == "COMPLETED"
    (event,) = events_named(record, "degraded")
    assert (event["status"], event["reason"]) == ("stubbed", "plan_parse_failed")
    assert "a stub plan ran" in record["user_text"]


def test_a_waiting_goal_can_be_cancelled_at_once(planner: Planner) -> None:
    planner.will_say(ASK)
    goal = planner.submit()
    work_off()

    cancel_goal(goal)
    goal.refresh_from_db()

    assert (goal.status, goal.outcome) == ("cancelled", "cancelled")
    assert goal.next_user_question is None


def test_a_goal_cancelled_between_calls_makes_no_further_call(planner: Planner) -> None:
    planner.will_say("garbage", FINISH)
    goal = planner.submit()
    complete = planner.script.complete

    def cancelling(request: object) -> object:
        answer = complete(request)  # type: ignore[arg-type] # passed on
        cancel_goal(goal)
        return answer

    planner.script.complete = cancelling  # type: ignore[method-assign, assignment] # the seam is one method
    record = planner.finish(goal)

    assert planner.calls == 1
    assert (record["status"], record["outcome"]) == ("cancelled", "cancelled")
    assert events_named(record, "degraded") == []


def test_a_goal_cancelled_during_the_call_that_asks_the_user_does_not_wait(
    planner: Planner,
) -> None:
    planner.will_say(ASK)
    goal = planner.submit()
    complete = planner.script.complete

    def cancelling(request: object) -> object:
        cancel_goal(goal)
        return complete(request)  # type: ignore[arg-type] # passed on

    planner.script.complete = cancelling  # type: ignore[method-assign, assignment] # the seam is one method
    record = planner.finish(goal)

    assert (record["status"], record["outcome"]) == ("cancelled", "cancelled")
    assert record["next_user_question"] is None


def test_a_goal_cancelled_while_its_plan_runs_ends_with_the_run(planner: Planner) -> None:
    planner.will_say(PLAN)
    goal = planner.submit(mode="plan")
    run_goal(goal.pk)

    cancel_goal(goal)
    record = planner.finish(goal)

    assert record["status"] == "cancelled"
    assert record["results"][0]["skipped"] is True


@pytest.mark.django_db(transaction=True)
def test_a_cancellation_during_the_submission_of_a_plan_stops_its_run(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner.will_say(PLAN)
    goal = planner.submit(mode="plan")

    def cancel() -> None:
        cancel_goal(goal)
        connection.close()

    cancelling = threading.Thread(target=cancel)

    def submit_late(*args: Any, **options: Any) -> Run:
        cancelling.start()
        cancelling.join(0.5)
        return submit_run(*args, **options)

    monkeypatch.setattr("agents.cycle.nodes.submit_run", submit_late)
    run_goal(goal.pk)
    cancelling.join()

    assert Run.objects.get().cancel_requested_at is not None


def test_an_ended_goal_cannot_be_cancelled(planner: Planner) -> None:
    planner.will_say(FINISH)
    goal = planner.submit()
    planner.finish(goal)

    with pytest.raises(AlreadyEndedError):
        cancel_goal(goal)


def test_only_a_waiting_goal_takes_an_answer(planner: Planner) -> None:
    planner.will_say(FINISH)

    with pytest.raises(NotWaitingError):
        answer_goal(planner.submit(), {"text": "Oslo"})


def test_waiting_for_the_user_costs_no_time_budget(planner: Planner) -> None:
    planner.will_say(ASK, FINISH)
    goal = planner.submit(budget={"seconds": 60})
    work_off()
    long_ago = DatabaseNow() - timedelta(hours=2)
    Goal.objects.filter(pk=goal.pk).update(started_at=long_ago)
    goal.refresh_from_db()
    since = {"waiting_for": "input", "since": goal.started_at.isoformat()}  # type: ignore[union-attr] # started
    Goal.objects.filter(pk=goal.pk).update(execution_eval=since)

    answer_goal(goal, {"text": "Oslo"})
    record = planner.finish(goal)

    assert record["status"] == "completed"


def test_two_workers_never_hold_one_goal(planner: Planner) -> None:
    goal = planner.submit()

    assert claim_goal(goal.pk) is not None
    assert claim_goal(goal.pk) is None


def test_a_silent_goal_is_taken_up_again(planner: Planner) -> None:
    planner.will_say(FINISH)
    goal = planner.submit()
    OutboxMessage.objects.all().delete()
    assert reconcile_goals() == 0
    pass_time(goal, 61)
    assert reconcile_goals() == 0
    let_marks_pass("plan")

    assert reconcile_goals() == 1
    assert planner.finish(goal)["status"] == "completed"


def test_a_goal_that_kills_its_workers_ends_as_poison(planner: Planner) -> None:
    planner.will_say(FINISH)
    goal = planner.submit()
    for _ in range(3):
        assert claim_goal(goal.pk) is not None
        pass_time(goal, 61)
    assert claim_goal(goal.pk) is None

    reconcile_goals()
    record = planner.finish(goal)

    assert planner.calls == 0
    assert record["status"] == "failed"
    assert record["execution_eval"] == {"reason": "poison", "starts": 3}


def test_many_cycles_are_no_poison(planner: Planner) -> None:
    record = planner.run(*[CALL_ECHO] * 5, FINISH, max_iterations=6)

    assert record["status"] == "completed"


def test_raw_values_of_an_ended_goal_are_let_go(planner: Planner) -> None:
    planner.run(CALL_ECHO, FINISH)

    kept = WorkingItem.objects.filter(owner__startswith="goal:")
    assert kept.exists()
    assert not kept.filter(expires_at__isnull=True).exists()


def test_secrets_in_a_question_and_an_answer_are_masked(planner: Planner) -> None:
    token = "ghp_" + "a1B2" * 9
    question = ASK.replace("Which city?", f"Is {token} yours?")

    record = planner.run(question)

    assert token not in record["next_user_question"]
    assert token not in record["user_text"]
