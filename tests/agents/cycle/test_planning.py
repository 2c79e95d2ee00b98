"""The shell of the ladder: crashes, budgets, policies, what is stored."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from pytest_django import Settings

from agents.cycle.plan_node import generate_plan_with_retry
from agents.cycle.running import run_goal
from agents.goals.claims import claim_goal
from agents.goals.models import Attempt, Goal
from agents.goals.policies import schema_for
from agents.llm.models import LanguageModel, Provider
from agents.llm.provider import Completion
from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.rules import RedactionRule, forget_rules
from diagnostics.store.leases import LeaseLostError
from diagnostics.store.models import Event
from diagnostics.verdict.advice import advise
from diagnostics.verdict.cause import Finding
from diagnostics.verdict.queries import evidence_of
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.prompts import Request, ToolOffer
from tests.agents.conftest import CALL_ECHO, FINISH, PLAN, Planner, events_named, tables_holding
from tests.scripted import ScriptedProvider


class WorkerKilledError(BaseException):
    """what SIGKILL would be"""


def kill_after_call(planner: Planner, number: int) -> None:
    """Let the worker die once, right after the provider has answered call `number`."""
    complete = planner.script.complete

    def dying(request: object) -> object:
        answer = complete(request)  # type: ignore[arg-type] # passed on
        if planner.calls == number:
            raise WorkerKilledError
        return answer

    planner.script.complete = dying  # type: ignore[method-assign, assignment] # the seam is one method


def let_lease_expire(goal: Goal) -> None:
    """Move time past the lease."""
    Goal.objects.filter(pk=goal.pk).update(lease_until=DatabaseNow() - timedelta(seconds=1))


def test_a_call_lost_in_a_crash_is_spent_and_never_made_again(planner: Planner) -> None:
    planner.will_say("lost", CALL_ECHO, FINISH)
    goal = planner.submit()
    kill_after_call(planner, 1)

    with pytest.raises(WorkerKilledError):
        run_goal(goal.pk)
    let_lease_expire(goal)
    record = planner.finish(goal)

    assert planner.calls == 3
    assert [row["state"] for row in record["attempts"]] == ["call_failed", "valid", "valid"]
    assert record["status"] == "completed"


@pytest.mark.parametrize("crashes", [1, 2])
def test_crashes_never_cost_more_calls_than_the_budget(planner: Planner, crashes: int) -> None:
    planner.will_say({"text": "garbage", "repeat": True})
    goal = planner.submit()
    for number in range(1, crashes + 1):
        kill_after_call(planner, number)
        with pytest.raises(WorkerKilledError):
            run_goal(goal.pk)
        let_lease_expire(goal)

    record = planner.finish(goal)

    assert planner.calls == 2
    assert record["status"] == "failed"
    assert len(events_named(record, "degraded")) == 1


def test_a_finished_ladder_is_remembered_with_its_answer(planner: Planner) -> None:
    planner.will_say("garbage", CALL_ECHO)
    goal = planner.submit()
    claim = claim_goal(goal.pk)
    assert claim is not None
    request = Request(PlannerSchema.NEXT_STEP, "Say hello")

    first = generate_plan_with_retry(claim, request)
    second = generate_plan_with_retry(claim, request)

    assert first == second
    assert planner.calls == 2


def test_feedback_survives_a_crash_between_attempts(planner: Planner) -> None:
    planner.will_say('{"kind": "dance"}', CALL_ECHO, FINISH)
    goal = planner.submit()
    kill_after_call(planner, 2)

    with pytest.raises(WorkerKilledError):
        run_goal(goal.pk)
    let_lease_expire(goal)
    record = planner.finish(goal)

    assert "/kind: expected `kind`" in record["attempts"][1]["feedback"]


def test_a_rule_of_the_project_masks_a_goal_and_the_answers_of_its_planner(
    planner: Planner,
) -> None:
    planner.will_say("for CUST-48213", CALL_ECHO, FINISH)
    rule = {"name": "customers", "kind": "customer", "pattern": "CUST-[0-9]+"}
    RedactionRule.objects.create(project=planner.project, **rule)
    forget_rules()
    goal = planner.submit(goal="Say hello to CUST-48213", correlation_id="CUST-48213")
    planner.finish(goal)
    goal.refresh_from_db()
    assert goal.text_preview == "Say hello to [REDACTED:customer]"
    assert goal.correlation_id == "[REDACTED:customer]"
    first = Attempt.objects.filter(goal=goal).earliest("pk")
    assert first.preview == "for [REDACTED:customer]"


def test_an_overtaken_worker_stores_nothing(planner: Planner) -> None:
    planner.will_say(FINISH)
    goal = planner.submit()
    slow = claim_goal(goal.pk)
    let_lease_expire(goal)
    assert claim_goal(goal.pk) is not None
    assert slow is not None

    with pytest.raises(LeaseLostError), transaction.atomic():
        generate_plan_with_retry(slow, Request(PlannerSchema.NEXT_STEP, "Say hello"))

    assert planner.calls == 0
    assert not Attempt.objects.exists()


@pytest.mark.parametrize(
    ("budget", "calls"), [({"calls": 1}, 1), ({"calls": 3}, 2), ({"tokens": 5}, 1)]
)
def test_a_spent_budget_ends_the_goal(planner: Planner, budget: dict[str, int], calls: int) -> None:
    reply = {"text": "garbage", "input_tokens": 4, "output_tokens": 4, "repeat": True}

    record = planner.run(reply, budget=budget)

    assert planner.calls == calls
    assert record["status"] == "failed"
    expected = "degraded" if calls == 2 else "budget_exhausted"
    assert record["outcome"] == expected


def test_a_budget_counts_over_all_cycles(planner: Planner) -> None:
    record = planner.run({"text": CALL_ECHO, "repeat": True}, budget={"calls": 2})

    assert planner.calls == 2
    assert record["cycle"] == 3
    assert record["outcome"] == "budget_exhausted"
    assert events_named(record, "degraded")[0]["reason"] == "budget_exhausted"


@pytest.mark.slow
def test_transport_retries_are_counted_beside_the_attempts(planner: Planner) -> None:
    record = planner.run({"error": "provider_error"}, {"error": "rate_limited"}, CALL_ECHO, FINISH)

    assert record["status"] == "completed"
    assert [row["attempt"] for row in record["attempts"]] == [1, 1]
    assert record["attempts"][0]["transport_retries"] == 2


def test_the_transport_gives_up_after_two_retries(planner: Planner) -> None:
    record = planner.run({"error": "provider_error", "repeat": True})

    assert planner.calls == 3
    assert len(record["attempts"]) == 1
    assert record["outcome"] == "provider_failed"


def test_the_last_attempt_asks_in_schema_mode_where_the_model_has_it(planner: Planner) -> None:
    planner.language_model.last_output_mode = "schema"
    planner.language_model.supported_output_modes = ["text", "schema"]
    planner.language_model.save()

    record = planner.run("garbage", PLAN, mode="plan")

    assert [row["output_mode"] for row in record["attempts"]] == ["text", "schema"]
    steps = planner.script.requests[1].json_schema["properties"]["steps"]
    assert list(steps["items"]["properties"]) == ["step_id", "dependencies", "tool"]


@pytest.mark.parametrize(
    ("adapter", "address", "tokens", "is_narrow"),
    [
        ("openai", "http://127.0.0.1:8080/v1", 192, True),
        ("openai", "http://127.0.0.1:8080/v1", 1024, False),
        ("openai", "", 192, False),
        ("anthropic", "https://gateway.example", 192, False),
    ],
)
def test_only_short_answers_of_other_servers_have_a_narrow_schema(
    adapter: str, address: str, tokens: int, is_narrow: bool
) -> None:
    provider = Provider(adapter=adapter, base_url=address)
    model = LanguageModel(provider=provider, max_output_tokens=tokens)

    schema = schema_for(model, PlannerSchema.PLAN, [ToolOffer("echo")])

    assert ("prefixItems" in schema["properties"]["steps"]) is is_narrow


def test_dropped_constraints_are_recorded(planner: Planner) -> None:
    constraints = [{"text": "in English"}, {"text": "in rhyme", "optional": True}]

    record = planner.run("garbage", PLAN, mode="plan", constraints=constraints)

    assert [row["dropped_constraints"] for row in record["attempts"]] == [[], ["in rhyme"]]
    assert "in rhyme" in planner.prompts[0]
    assert "in rhyme" not in planner.prompts[1]
    assert "in English" in planner.prompts[1]


def test_an_unknown_tool_is_an_invalid_attempt_and_advised_with_its_nearest(
    planner: Planner,
) -> None:
    record = planner.run(PLAN.replace("echo", "ecko"), PLAN, mode="plan")

    assert (record["status"], record["outcome"]) == ("completed", "repaired")
    first, second = record["attempts"]
    (error,) = first["errors"]
    assert (error["code"], error["path"]) == ("tool_unknown", "/steps/0/tool")
    assert 'got "ecko"; the nearest is "echo"' in second["feedback"]
    (event,) = events_named(record, "unknown_tool")
    assert (event["tool"], event["attributes"]) == ("ecko", {"nearest": "echo"})
    (event,) = events_named(record, "parse_invalid")
    assert event["parse_error_type"] == "schema_invalid"
    now = clock.now()
    evidence = evidence_of(planner.project.pk, None, now - timedelta(hours=1), now, "unknown_tool")
    (advice,) = advise(Finding(None, top_kind="unknown_tool"), evidence)
    assert "ecko (nearest: echo)" in advice.evidence


def test_leniency_is_recorded_on_good_attempts_too(planner: Planner) -> None:
    record = planner.run('```json\n{"note": 1, "Kind": "FINISH"}\n```')

    (attempt,) = record["attempts"]
    assert [item["kind"] for item in attempt["repairs"]] == ["fence"]
    assert [item["kind"] for item in attempt["coerced"]] == [
        *("unknown_key_dropped", "near_name", "letter_case")
    ]
    (event,) = events_named(record, "succeeded")
    assert event["repairs"] == attempt["repairs"]
    assert event["coerced"] == attempt["coerced"]


@pytest.mark.parametrize(
    "reply", ["\x00", "\ud800", '{"kind": "\\u0000"}', '{"kind": "finish", "answer": "\\u0000"}']
)
def test_characters_that_no_column_holds_do_no_harm(planner: Planner, reply: str) -> None:
    record = planner.run(reply, reply)

    assert record["status"] in {"failed", "completed"}


def test_tokens_and_finish_reason_are_kept(planner: Planner) -> None:
    reply = {"text": FINISH, "input_tokens": 11, "output_tokens": 7, "finish_reason": "stop"}

    (attempt,) = planner.run(reply)["attempts"]

    assert (attempt["input_tokens"], attempt["output_tokens"]) == (11, 7)
    assert attempt["finish_reason"] == "stop"
    assert attempt["latency_ms"] >= 0


def test_who_answered_is_kept_with_the_attempt_and_its_event(planner: Planner) -> None:
    told = {"upstream": "azure", "system_fingerprint": "fp_44709d6fcb", "reasoning_tokens": 5}
    reply = {"text": FINISH, "served_model": "other-model", **told}

    record = planner.run(reply)

    (event,) = events_named(record, "succeeded")
    for row in (*record["attempts"], event):
        assert {name: row[name] for name in told} == told
        assert row["served_model"] == "other-model"


@pytest.mark.parametrize("name", [7, "", " ", ["m"]])
def test_a_name_that_is_none_does_not_count_as_who_answered(
    planner: Planner, monkeypatch: pytest.MonkeyPatch, name: object
) -> None:
    answer = Completion(FINISH, "stop", served_model=name)  # type: ignore[arg-type] # as servers do
    monkeypatch.setattr(ScriptedProvider, "complete", lambda *_: answer)

    (attempt,) = planner.run(FINISH)["attempts"]

    assert (attempt["state"], attempt["served_model"]) == ("valid", None)


def test_a_provider_that_cannot_be_opened_ends_the_goal_with_a_reason(planner: Planner) -> None:
    planner.language_model.provider.base_url = "file:/nowhere/at/all"
    planner.language_model.provider.adapter = "openai"
    planner.language_model.provider.credential = "env:NO_SUCH_CREDENTIAL"
    planner.language_model.provider.save()

    record = planner.run()

    assert record["outcome"] == "provider_failed"
    assert "env:NO_SUCH_CREDENTIAL is not set" in record["attempts"][0]["errors"][0]["message"]


def test_scripts_are_refused_unless_the_installation_allows_them(
    planner: Planner, settings: object
) -> None:
    settings.FAILSOFT_ALLOW_SCRIPTED = False  # type: ignore[attr-defined] # pytest-django's fixture

    record = planner.run(FINISH)

    assert planner.calls == 0
    assert record["outcome"] == "provider_failed"


def test_the_goal_as_asked_is_kept_encrypted_only(
    planner: Planner, django_capture_on_commit_callbacks: Callable[..., object]
) -> None:
    record = planner.run("no", "no", goal="x" * 5_000 + " marker-at-the-end")

    assert tables_holding("marker-at-the-end") == []
    assert len(record["goal"].encode()) <= 4 * 1024


def test_goals_and_their_events_carry_the_environment_of_the_installation(
    planner: Planner, settings: Settings
) -> None:
    settings.FAILSOFT_ENVIRONMENT = "local"
    planner.run(FINISH)
    assert Goal.objects.get().environment == "local"
    assert set(Event.objects.values_list("environment", flat=True)) == {"local"}
