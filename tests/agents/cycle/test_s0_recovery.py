"""S0-1 to S0-12, S0-56, S0-59, S0-60: what becomes of answers that cannot be used."""

import pytest

from agents.goals.models import Goal
from agents.llm.models import LanguageModel, Provider
from agents.tasks import run_goal
from tests.agents.conftest import ASK, CALL_ECHO, FINISH, Api, Planner, events_named
from tests.scripted import SCRIPTS, ScriptedProvider

GARBAGE = ("not json", "still not")
WRONG_KIND = '{"kind":"dance"}'


@pytest.mark.parametrize("replies", [GARBAGE, (WRONG_KIND, WRONG_KIND)])
def test_s0_1_invalid_output_is_never_missing_user_input(
    planner: Planner, replies: tuple[str, ...]
) -> None:
    record = planner.run(*replies)

    assert record["status"] == "failed"
    assert record["next_user_question"] is None


def test_s0_2_a_schema_violation_ends_exactly_like_text_that_is_no_json(planner: Planner) -> None:
    no_json = planner.run(*GARBAGE)
    wrong_kind = planner.run(WRONG_KIND, WRONG_KIND)

    assert no_json["state"] == wrong_kind["state"]
    assert no_json["outcome"] == wrong_kind["outcome"] == "degraded"


@pytest.mark.parametrize("replies", [GARBAGE, (WRONG_KIND, WRONG_KIND), ("", "")])
def test_s0_3_no_formatter_failure_ever_asks_a_question(
    planner: Planner, replies: tuple[str, ...]
) -> None:
    record = planner.run(*replies)

    assert record["next_user_question"] is None
    assert not set("?¿") & set(record["user_text"] + "".join(record["help"]))


def test_s0_4_diagnostics_of_each_invalid_attempt_are_complete(planner: Planner, api: Api) -> None:
    planner.run("not json", WRONG_KIND, correlation_id="run-4")

    answer = api.get("events", provider="fake", model="fake-1", kind="parse_invalid").json()

    assert len(answer["items"]) == 2
    for event in answer["items"]:
        assert (event["provider"], event["model"]) == ("fake", "fake-1")
        assert event["parse_error_type"] in {"not_json", "schema_invalid"}
        assert event["validation_errors"][0]["message"]
        assert event["raw_output_preview"] in {"not json", WRONG_KIND}


def test_s0_5_the_same_script_gives_the_same_course(planner: Planner) -> None:
    first = planner.run("not json", CALL_ECHO, FINISH)
    second = planner.run("not json", CALL_ECHO, FINISH)

    assert first["state"] | {"execution_eval": 0} == second["state"] | {"execution_eval": 0}
    assert [e["name"] for e in first["events"]] == [e["name"] for e in second["events"]]


@pytest.mark.parametrize("max_attempts", [1, 2, 3, 4, 5])
def test_s0_5_endless_garbage_costs_no_more_than_the_budget(
    planner: Planner, max_attempts: int
) -> None:
    planner.run({"text": "garbage", "repeat": True}, retry={"max_attempts": max_attempts})

    assert planner.calls == max_attempts


def test_s0_6_no_score_of_a_models_quality_is_needed_or_kept(planner: Planner) -> None:
    record = planner.run(CALL_ECHO, FINISH)

    assert record["status"] == "completed"
    keys = {key for attempt in record["attempts"] for key in attempt}
    assert not {key for key in keys if "score" in key or "quality" in key}


def test_s0_7_another_provider_is_never_asked_instead(planner: Planner) -> None:
    spare = Provider.objects.create(
        project=planner.project, name="spare", adapter="scripted", base_url="spare"
    )
    LanguageModel.objects.create(project=planner.project, provider=spare, name="spare-1")
    SCRIPTS["spare"] = ScriptedProvider([FINISH])

    planner.run(*GARBAGE)

    assert SCRIPTS["spare"].requests == []


def test_s0_8_the_first_prompt_holds_no_feedback(planner: Planner) -> None:
    record = planner.run(*GARBAGE)

    assert record["attempts"][0]["feedback"] == ""
    assert "could not be used" not in planner.prompts[0]
    assert "mistakes" not in planner.prompts[0]


def test_s0_9_the_second_prompt_holds_the_concrete_errors_of_the_first(planner: Planner) -> None:
    planner.run('{"kind": "call_tool",\n "tool": 7}', CALL_ECHO, FINISH)

    assert "line 2 column 10: /tool: expected a valid string" in planner.prompts[1]


def test_s0_10_the_task_returns_normally_and_the_goal_is_degraded(planner: Planner) -> None:
    planner.will_say(*GARBAGE)
    goal = planner.submit()

    run_goal(str(goal.pk))

    goal.refresh_from_db()
    assert (goal.status, goal.outcome) == (Goal.Status.FAILED, Goal.Outcome.DEGRADED)


def test_s0_11_two_calls_are_the_default(planner: Planner) -> None:
    planner.run({"text": "garbage", "repeat": True})

    assert planner.calls == 2


@pytest.mark.parametrize("name", ["max_attempts", "max_retries"])
def test_s0_12_a_third_attempt_can_be_configured(planner: Planner, name: str) -> None:
    record = planner.run("garbage", "garbage", ASK, retry={name: 3})

    assert planner.calls == 3
    assert record["status"] == "waiting_user"


def test_s0_56_a_good_first_answer_costs_one_call_and_no_failure_event(planner: Planner) -> None:
    """Good attempts are recorded as `succeeded`, the denominator (X-16); no failure is."""
    planner.will_say(CALL_ECHO)
    goal = planner.submit()

    run_goal(str(goal.pk))

    goal.refresh_from_db()
    assert planner.calls == 1
    assert goal.pdca_phase == Goal.Phase.DO
    assert goal.current_run is not None


def test_s0_56_the_happy_path_records_no_failure(planner: Planner) -> None:
    record = planner.run(CALL_ECHO, FINISH)

    assert events_named(record, "parse_invalid") == []
    assert events_named(record, "degraded") == []
    assert [event["attempt"] for event in events_named(record, "succeeded")] == [1, 1]
    assert record["outcome"] == "ok_first"


def test_s0_59_invalid_then_valid_goes_on_as_if_nothing_had_been(planner: Planner) -> None:
    record = planner.run("not json", CALL_ECHO, FINISH)

    assert record["status"] == "completed"
    assert record["last_validation_error"] is None
    assert record["results"][0]["output"] == {"text": "hello"}
    assert record["outcome"] == "repaired"


def test_s0_60_all_invalid_ends_failed_with_an_answer_to_the_person(planner: Planner) -> None:
    record = planner.run(*GARBAGE)

    assert record["status"] == "failed"
    assert record["user_text"]
    assert record["runs"] == []
