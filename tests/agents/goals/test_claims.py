"""Leases that are renewed while a provider thinks, and given up when work goes wrong."""

import time
from datetime import timedelta

import pytest
from django.db import DatabaseError, Error, InterfaceError

from agents.cycle.running import run_goal
from agents.goals.claims import GoalClaim, claim_goal
from agents.goals.models import Goal
from diagnostics import clock
from diagnostics.store.leases import LeaseLostError, kept_alive
from tests.agents.conftest import Planner

TICK = 0.02


def leased_until_later_than(goal: Goal, seconds: float) -> bool:
    """Whether the lease ends later than so many seconds from now."""
    until = Goal.objects.values_list("lease_until", flat=True).get(pk=goal.pk)
    return until is not None and until > clock.now() + timedelta(seconds=seconds)


def wait_until(condition: object) -> None:
    """Wait at most 5 s."""
    deadline = time.monotonic() + 5
    while not condition():  # type: ignore[operator] # called
        assert time.monotonic() < deadline
        time.sleep(TICK)


@pytest.mark.django_db(transaction=True)
def test_a_lease_is_renewed_while_a_call_lasts(planner: Planner) -> None:
    goal = planner.submit()
    claim = claim_goal(goal.pk)
    assert claim is not None
    Goal.objects.update(lease_until=clock.now() + timedelta(seconds=1))

    with kept_alive(TICK, claim.renew):
        wait_until(lambda: leased_until_later_than(goal, 30))


@pytest.mark.django_db(transaction=True)
def test_a_lost_lease_is_not_renewed(planner: Planner) -> None:
    goal = planner.submit()
    claim = claim_goal(goal.pk)
    assert claim is not None
    Goal.objects.update(lease_until=None, fencing_token=claim.token + 1)

    with kept_alive(TICK, claim.renew):
        time.sleep(10 * TICK)

    assert not leased_until_later_than(goal, 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("failure", [DatabaseError, InterfaceError])
def test_one_failure_of_the_database_does_not_end_the_renewing(
    planner: Planner, monkeypatch: pytest.MonkeyPatch, failure: type[Error]
) -> None:
    goal = planner.submit()
    claim = claim_goal(goal.pk)
    assert claim is not None
    failures = [failure("gone")]
    renew = GoalClaim.renew

    def failing(self: GoalClaim, **changes: object) -> None:
        if failures:
            raise failures.pop()
        renew(self, **changes)

    monkeypatch.setattr(GoalClaim, "renew", failing)
    Goal.objects.update(lease_until=clock.now() + timedelta(seconds=1))

    with kept_alive(TICK, claim.renew):
        wait_until(lambda: leased_until_later_than(goal, 30))


def test_an_older_claim_changes_nothing(planner: Planner) -> None:
    goal = planner.submit()
    old = claim_goal(goal.pk)
    Goal.objects.update(lease_until=None)
    new = claim_goal(goal.pk)
    assert old is not None
    assert new is not None

    with pytest.raises(LeaseLostError):
        old.renew(pdca_phase=Goal.Phase.ACT)
    old.drop()

    assert leased_until_later_than(goal, 30)
    goal.refresh_from_db()
    assert goal.pdca_phase == Goal.Phase.PLAN


def test_an_unexpected_fault_gives_the_goal_back_at_once(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner.will_say("{}")
    goal = planner.submit()
    monkeypatch.setattr("agents.cycle.plan_node.interpret", lambda *given: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        run_goal(goal.pk)

    assert not leased_until_later_than(goal, 0)
    assert claim_goal(goal.pk) is not None


def test_an_overtaken_worker_ends_quietly(planner: Planner) -> None:
    planner.will_say("{}")
    goal = planner.submit()
    complete = planner.script.complete

    def overtaken(request: object) -> object:
        Goal.objects.update(fencing_token=99)
        return complete(request)  # type: ignore[arg-type] # passed on

    planner.script.complete = overtaken  # type: ignore[method-assign, assignment] # the seam is one method

    run_goal(goal.pk)

    goal.refresh_from_db()
    assert goal.status == Goal.Status.RUNNING
    assert goal.attempts.get().state == "calling"


def test_a_fault_of_the_database_leaves_the_lease_to_run_out(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal = planner.submit()

    def fail(*given: object) -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr("agents.cycle.running._walk_on", fail)
    monkeypatch.setattr(GoalClaim, "drop", fail)

    with pytest.raises(DatabaseError):
        run_goal(goal.pk)

    assert leased_until_later_than(goal, 30)


def test_an_attempt_that_was_stored_begins_the_count_of_starts_anew(planner: Planner) -> None:
    planner.will_say("garbage", "garbage")
    goal = planner.submit()
    Goal.objects.update(starts=2)
    complete = planner.script.complete

    def counting(request: object) -> object:
        seen.append(Goal.objects.values_list("starts", flat=True).get())
        return complete(request)  # type: ignore[arg-type] # passed on

    seen: list[int] = []
    planner.script.complete = counting  # type: ignore[method-assign, assignment] # the seam is one method

    run_goal(goal.pk)

    assert seen == [3, 1]
