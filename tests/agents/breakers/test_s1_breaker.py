"""A model that only fails is left alone; goals wait for it, and end softly when it stays away."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import stamina
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from agents.breakers import store
from agents.breakers.alerts import gauge_breakers
from agents.breakers.models import Breaker, BreakerTransition
from agents.breakers.store import ManualChange, change_breaker
from agents.cycle.running import run_goal
from agents.goals.models import Goal
from agents.goals.records import goal_record
from agents.goals.submission import cancel_goal
from agents.llm.models import Provider
from agents.llm.provider import Completion, CompletionRequest
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Membership, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.store.models import OutboxMessage
from failsoft.retry.breaker import isolate
from tests.agents.conftest import (
    PLAN,
    Api,
    Planner,
    Record,
    events_named,
    let_time_pass,
    let_time_pass_until,
    work_off,
)
from tests.agents.llm.wires import Fault, Say, Wire

DEAD = {"error": "provider_error", "repeat": True}
REFUSING = {"error": "refused", "repeat": True}
NONSENSE = {"text": "no plan", "repeat": True}
GOOD_FOR_EVER = {"text": PLAN, "repeat": True}
HUNDRED = 100


@pytest.fixture
def console(planner: Planner) -> Client:
    client = Client()
    user, role = User.objects.create_user("ada"), Membership.Role.VIEWER
    Membership.objects.create(project=planner.project, user=user, role=role)
    client.force_login(user)
    return client


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """Retries of the transport happen, without their pauses; nothing is believed before."""
    store.seen_closed.clear()
    with stamina.set_testing(True, attempts=3, cap=True):
        yield
    store.seen_closed.clear()


def run_many(planner: Planner, count: int, **order: Any) -> list[Record]:
    """Submit goals one after the other and work them off, whatever time it takes."""
    goals = [planner.submit(mode="plan", **order) for _ in range(count)]
    work_off()
    return [goal_record(Goal.objects.get(pk=goal.pk)) for goal in goals]


def state_of(kind: str) -> str:
    return Breaker.objects.get(kind=kind).state


def start(planner: Planner, **order: Any) -> Goal:
    """Let a worker take a new goal once, and leave whatever it enqueues."""
    goal = planner.submit(mode="plan", **order)
    OutboxMessage.objects.filter(kwargs__goal_id=str(goal.pk)).delete()
    run_goal(goal.pk)
    return Goal.objects.get(pk=goal.pk)


def test_s1_33_the_sixth_exhausted_run_in_a_row_opens_and_retries_stop(planner: Planner) -> None:
    planner.will_say(NONSENSE)
    run_many(planner, 5)
    assert not Breaker.objects.filter(state="open").exists()
    run_many(planner, 1)
    assert (planner.calls, state_of("quality")) == (12, "open")

    (record,) = run_many(planner, 1)

    assert planner.calls == 13
    assert (record["status"], record["outcome"]) == ("failed", "degraded")
    assert [event["attempts"] for event in events_named(record, "degraded")] == [1]
    assert state_of("transport") == "closed"


def test_s1_33_with_policy_deny_the_next_run_makes_no_call(
    planner: Planner, settings: Settings
) -> None:
    settings.FAILSOFT_BREAKER_POLICY = "deny"
    planner.will_say(NONSENSE)
    run_many(planner, 6)

    goal = start(planner)

    assert planner.calls == 12
    assert (goal.status, goal.attempts.count()) == ("queued", 0)


@pytest.mark.slow
def test_s1_33_a_ladder_that_repairs_is_healthy(planner: Planner) -> None:
    planner.will_say(*["no plan", PLAN] * 12)
    records = run_many(planner, 12)
    assert {record["outcome"] for record in records} == {"repaired"}
    assert not Breaker.objects.filter(kind="quality").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "policy", "max_attempts", "most"),
    [
        # 6 calls with two transport retries each; then a probe at a time, without any.
        (DEAD, "single_attempt", 2, 3 * 6 + 10),
        # 6 ladders; then one attempt a goal, and no goal waits: no probe comes up.
        pytest.param(NONSENSE, "single_attempt", 5, 5 * 6 + 94, marks=pytest.mark.nightly),
        # 6 ladders; then nothing but probes, one ladder each.
        pytest.param(NONSENSE, "deny", 5, 5 * 6 + 5 * 10, marks=pytest.mark.nightly),
    ],
)
def test_s1_34_hundred_goals_against_a_dead_planner(
    planner: Planner,
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
    said: dict[str, object],
    policy: str,
    max_attempts: int,
    most: int,
) -> None:
    settings.FAILSOFT_BREAKER_POLICY = policy
    if said is NONSENSE and policy == "single_attempt":
        # On a slow machine the goals must not outlast the cool-down: none of them waits.
        settings.FAILSOFT_BREAKER_COOL_DOWN_SECONDS = 3600.0
    planner.will_say(said)

    records = run_many(
        planner, HUNDRED, retry={"max_attempts": max_attempts}, budget={"seconds": 60}
    )

    without = HUNDRED * (3 if said is DEAD else max_attempts)
    what = said.get("error", "answers are invalid")
    with capsys.disabled():
        print(  # noqa: T201 - the figure that is asked for
            f"\n{HUNDRED} goals, planner dead ({what}), {policy}, {max_attempts} attempts:"
            f" {planner.calls} provider calls; {without} without a breaker"
        )
    assert planner.calls <= most
    assert {record["status"] for record in records} == {"failed"}


def test_s1_35_after_the_cool_down_success_closes(planner: Planner) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    assert state_of("transport") == "open"

    let_time_pass(13)
    planner.will_say(GOOD_FOR_EVER)
    records = run_many(planner, 2)

    assert [record["outcome"] for record in records] == ["ok_first", "ok_first"]
    assert state_of("transport") == "closed"


def test_s1_35_after_the_cool_down_failure_opens_again(planner: Planner) -> None:
    planner.will_say(DEAD)
    run_many(planner, 6)
    let_time_pass(13)
    calls = planner.calls

    (record,) = run_many(planner, 1)

    # A probe is one call: the transport does not repeat it.
    assert planner.calls == calls + 1
    assert record["outcome"] == "provider_failed"
    breaker = Breaker.objects.get(kind="transport")
    assert (breaker.state, breaker.trips) == ("open", 2)


def test_s1_35_the_probe_of_quality_is_a_whole_ladder(planner: Planner) -> None:
    planner.will_say(NONSENSE)
    run_many(planner, 6)
    let_time_pass(13)
    planner.will_say("no plan", PLAN, "no plan", PLAN)

    records = run_many(planner, 2)

    assert {record["outcome"] for record in records} == {"repaired"}
    assert state_of("quality") == "closed"


def test_s1_51_a_goal_that_may_not_call_waits_and_then_completes(planner: Planner) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    waiting = start(planner)

    message = OutboxMessage.objects.get(kwargs__goal_id=str(waiting.pk))
    until = Breaker.objects.get(kind="transport").open_until
    assert until is not None
    assert message.available_at >= until
    assert (waiting.status, waiting.outcome) == ("queued", None)
    assert waiting.execution_eval is not None
    assert waiting.execution_eval["reason"] == "circuit_open"

    planner.will_say(GOOD_FOR_EVER)
    record = planner.finish(waiting)
    assert (record["status"], record["outcome"]) == ("completed", "ok_first")


def test_s1_51_a_waiting_goal_survives_a_lost_message(planner: Planner) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    waiting = start(planner)
    assert waiting.lease_until is not None
    message = OutboxMessage.objects.get(kwargs__goal_id=str(waiting.pk))
    assert waiting.lease_until > message.available_at


def test_s1_51_a_waiting_goal_is_cancelled_at_once(planner: Planner) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    waiting = start(planner)
    cancel_goal(waiting)
    assert planner.finish(waiting)["status"] == "cancelled"


def test_s1_51_a_goal_whose_time_goes_by_before_the_breaker_ends_with_that_reason(
    planner: Planner,
) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    waiting = start(planner, budget={"seconds": 60})
    message = OutboxMessage.objects.get(kwargs__goal_id=str(waiting.pk))
    let_time_pass_until(message.available_at)
    # The worker is late: by now the budget is over as well.
    let_time_pass(300)

    record = planner.finish(waiting)

    assert (record["status"], record["outcome"]) == ("failed", "circuit_open")
    assert [event["reason"] for event in events_named(record, "degraded")] == ["circuit_open"]


def test_s1_51_a_dead_provider_and_a_good_one_do_not_touch_each_other(
    planner: Planner, api: Api
) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    planner.will_say('{"kind": "finish", "answer": "Done."}')
    record = planner.finish(planner.submit())
    assert record["status"] == "completed"


def test_s1_63_the_time_budget_bounds_the_waiting_and_no_call_is_made(planner: Planner) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    calls = planner.calls

    (record,) = run_many(planner, 1, budget={"seconds": 5})

    assert planner.calls == calls
    assert record["outcome"] == "circuit_open"
    assert record["attempts"] == []


def test_s1_81_a_high_failure_rate_activates_the_breaker(planner: Planner, api: Api) -> None:
    """Half of ten calls fail: nobody failed six times in a row, and still it opens."""
    failing: list[Any] = [PLAN, {"error": "refused"}] * 5
    planner.will_say(*failing)
    run_many(planner, 10)

    assert state_of("transport") == "open"
    (transition,) = BreakerTransition.objects.all()
    assert transition.cause == "fault_rate"
    assert (
        'failsoft_breakers_open{kind="transport",model="fake-1",provider="fake"} 1.0'
        in api.metrics()
    )
    (shown,) = api.get("breakers").json()["items"]
    assert (shown["state"], shown["transitions"][0]["to_state"]) == ("open", "open")


def test_s1_81_circuit_open_is_no_parse_failure_and_the_person_is_told_the_usual(
    planner: Planner, api: Api
) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    (record,) = run_many(planner, 1, budget={"seconds": 5})

    (event,) = events_named(record, "degraded")
    assert (event["reason"], event["attempts"]) == ("circuit_open", 0)
    assert record["last_validation_error"] is None
    assert record["execution_eval"] == {"degraded": True, "reason": "circuit_open"}
    assert events_named(record, "parse_invalid") == []
    assert record["user_text"].startswith("An internal planning error")
    assert record["correlation_id"] in record["user_text"]
    assert "?" not in record["user_text"]
    assert record["next_user_question"] is None
    retries = 'failsoft_plan_retries_failed_total{model="fake-1",provider="fake"} 0.0'
    assert retries in api.metrics()


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "after_opening"), [("single_attempt", 1), ("deny", 0)])
@pytest.mark.parametrize("max_attempts", [1, 2, 5])
def test_s28_calls_are_bounded_by_max_attempts_times_the_runs_until_open(
    planner: Planner, settings: Settings, policy: str, after_opening: int, max_attempts: int
) -> None:
    settings.FAILSOFT_BREAKER_POLICY = policy
    planner.will_say(NONSENSE)
    retry = {"max_attempts": max_attempts}
    run_many(planner, 6, retry=retry)
    assert planner.calls == 6 * max_attempts

    for _ in range(4):
        start(planner, retry=retry)
    assert planner.calls == 6 * max_attempts + 4 * after_opening


def test_the_threshold_is_a_setting(planner: Planner, settings: Settings) -> None:
    settings.FAILSOFT_BREAKER_THRESHOLD = 1
    planner.will_say(NONSENSE)
    run_many(planner, 2)
    assert state_of("quality") == "open"


def test_a_project_sees_its_own_breakers_only(planner: Planner) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    other = Project.objects.create(slug="other", name="Other")
    theirs = Api(issue_key(other, "theirs", [Scope.READ]).text)
    assert theirs.get("breakers").json() == {"items": []}
    (gauge,) = gauge_breakers(other.pk)
    assert gauge.samples == []
    assert Client().get("/api/v1/breakers").status_code == 401


def test_a_ladder_that_may_not_call_gives_its_probe_back(planner: Planner) -> None:
    planner.will_say(NONSENSE)
    run_many(planner, 6)
    let_time_pass(13)
    change_breaker(Breaker.objects.get(kind="transport").pk, isolate, ManualChange("ada"))

    goal = start(planner)

    assert (goal.status, planner.calls) == ("queued", 12)
    quality = Breaker.objects.get(kind="quality")
    assert (quality.state, quality.probe_until) == ("half_open", None)


def test_a_provider_that_cannot_be_opened_is_no_fault_of_the_transport(
    planner: Planner, settings: Settings
) -> None:
    settings.FAILSOFT_ALLOW_SCRIPTED = False
    planner.will_say(PLAN)
    records = run_many(planner, 7)
    assert {record["outcome"] for record in records} == {"provider_failed"}
    assert not Breaker.objects.exists()


@pytest.mark.parametrize(("status", "state"), [(413, "closed"), (401, "open")])
def test_goals_refused_for_what_they_contain_do_not_stop_the_others(
    planner: Planner, status: int, state: str
) -> None:
    with Wire("openai", [Fault(status)] * 7) as wire:
        Provider.objects.update(adapter="openai", base_url=wire.base_url)
        run_many(planner, 7)
    states = set(Breaker.objects.filter(kind="transport").values_list("state", flat=True))
    assert (states or {"closed"}) == {state}


def test_time_that_goes_by_after_the_wait_is_the_budgets(planner: Planner) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    waiting = start(planner, budget={"seconds": 60})
    planner.will_say("no plan", PLAN)
    message = OutboxMessage.objects.get(kwargs__goal_id=str(waiting.pk))
    let_time_pass_until(message.available_at)
    answer = planner.script.complete

    def slow(request: CompletionRequest) -> Completion:
        let_time_pass(100)
        return answer(request)

    planner.script.complete = slow  # type: ignore[method-assign] # the seam is one method
    record = planner.finish(waiting)
    assert (record["outcome"], planner.calls) == ("budget_exhausted", 1)


def test_a_goal_waits_as_long_as_its_provider_asks(planner: Planner, console: Client) -> None:
    with Wire("openai", [Fault(429, "20"), Say(PLAN)]) as wire:
        Provider.objects.update(adapter="openai", base_url=wire.base_url)
        waiting = start(planner)
        page = console.get(f"/runs/{waiting.correlation_id}/").text
        message = OutboxMessage.objects.get(kwargs__goal_id=str(waiting.pk))
        record = planner.finish(waiting)
    assert message.available_at - waiting.created_at >= timedelta(seconds=20)
    assert "Waiting: the provider asked to call again later" in page
    assert "next attempt <time" in page
    assert (record["status"], record["outcome"]) == ("completed", "ok_first")


def test_a_waiting_goal_says_so_on_its_page(planner: Planner, console: Client) -> None:
    planner.will_say(REFUSING)
    run_many(planner, 6)
    waiting = start(planner)
    page = console.get(f"/runs/{waiting.correlation_id}/").content.decode()
    assert "circuit breaker is open" in page
    assert "next attempt <time" in page
    rows = Breaker.objects.filter(project=planner.project, kind="transport")
    rows.update(state="isolated", open_until=None)
    page = console.get(f"/runs/{waiting.correlation_id}/").content.decode()
    # Only a person closes it: no attempt is announced.
    assert "the model is isolated" in page
    assert "next attempt <time" not in page
