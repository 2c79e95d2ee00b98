"""S1: the ladder as a person meets it: how often is asked, with what, and what is kept of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from config.retry import settle_retry
from diagnostics.store.models import Event
from failsoft.retry.answers import Misunderstood, PlannerSchema, Understood, interpret
from failsoft.retry.policy import RetryConfig
from tests.agents.conftest import PLAN, Api, Planner, Record, events_named

BROKEN = '{"steps": [\n  {"step_id": "step_1",\n   "tool": 5}\n]}'
PROSE = "Of course! First I would say hello."
GOAL = "Say hello to Ada"
FORMS_LINE = "Ids are step_1, step_2"


def run(planner: Planner, *replies: Any, **order: Any) -> Record:
    """A goal in mode plan with these replies."""
    return planner.run(*replies, goal=GOAL, mode="plan", **order)


def with_environment(settings: Any, env: Mapping[str, str]) -> None:
    """What a process that starts with these variables would have settled."""
    settings.FAILSOFT_PLAN_RETRY = settle_retry({}, env)


def test_s1_4_every_attempt_is_counted_on_the_goal(planner: Planner) -> None:
    record = run(planner, PROSE, BROKEN, PLAN, retry={"max_retries": 3})

    assert [row["attempt"] for row in record["attempts"]] == [1, 2, 3]


def test_s1_5_error_and_broken_text_of_each_attempt_are_kept(planner: Planner) -> None:
    record = run(planner, PROSE, BROKEN)

    assert [row["preview"] for row in record["attempts"]] == [PROSE, BROKEN]
    assert all(row["errors"][0]["message"] for row in record["attempts"])


def test_s1_6_to_s1_10_and_s1_48_the_second_prompt_holds_everything_that_helps(
    planner: Planner,
) -> None:
    run(planner, BROKEN, PLAN)
    first, second = planner.prompts

    assert "Errors:" not in first
    assert GOAL in second, "the intent"
    assert BROKEN in second, "the broken plan"
    assert "line 3 column 12: /steps/0/tool" in second, "the error and its place"
    assert BROKEN.split("\n")[2][11] == "5", "which is the true place"
    assert "Common mistakes to avoid:\n- " in second
    assert "Return only the corrected JSON object." in second


def test_s1_11_judging_a_text_is_a_step_of_its_own(planner: Planner) -> None:
    planner.will_say(PLAN)

    good, bad = (interpret(text, "stop", PlannerSchema.PLAN) for text in (PLAN, BROKEN))

    assert isinstance(good, Understood)
    assert isinstance(bad, Misunderstood)
    assert planner.calls == 0


@pytest.mark.parametrize("number", [1, 3])
def test_s1_23_and_s1_85_the_variable_sets_the_total_of_calls(
    planner: Planner, settings: Any, number: int
) -> None:
    with_environment(settings, {"CCOS_MAX_PLAN_RETRIES": str(number)})

    run(planner, {"text": PROSE, "repeat": True})

    assert planner.calls == number


@pytest.mark.parametrize("word", ["false", "0", "no", "off"])
@pytest.mark.parametrize("order", [{}, {"retry": {"max_retries": 3}}])
def test_s1_24_and_s1_86_without_feedback_every_attempt_has_the_initial_prompt(
    planner: Planner, settings: Any, word: str, order: Record
) -> None:
    with_environment(settings, {"CCOS_PLAN_RETRY_FEEDBACK": word})
    constraints = [{"text": "in rhyme", "optional": True}]

    record = run(planner, {"text": PROSE, "repeat": True}, constraints=constraints, **order)

    assert planner.calls == record["retry"]["max_retries"] > 1
    assert set(planner.prompts) == {planner.prompts[0]}
    assert "in rhyme" in planner.prompts[0]
    assert not any(row["simplified"] for row in record["attempts"])


@pytest.mark.parametrize("word", ["true", "1", "yes", "on"])
def test_s1_24_and_s1_86_with_feedback_every_later_prompt_holds_the_errors(
    planner: Planner, settings: Any, word: str
) -> None:
    with_environment(settings, {"CCOS_PLAN_RETRY_FEEDBACK": word})

    run(planner, PROSE, PROSE)

    assert ["Errors:" in prompt for prompt in planner.prompts] == [False, True]


@pytest.mark.parametrize(
    ("word", "outcome"), [("true", "stubbed"), ("1", "stubbed"), ("0", "degraded")]
)
def test_s1_25_the_variable_switches_the_stub(
    planner: Planner, settings: Any, word: str, outcome: str
) -> None:
    with_environment(settings, {"CCOS_PLAN_STUB_FALLBACK": word})

    assert run(planner, PROSE, PROSE)["outcome"] == outcome


def test_a_goals_own_retry_wins_over_the_environment(planner: Planner, settings: Any) -> None:
    with_environment(settings, {"CCOS_MAX_PLAN_RETRIES": "5"})

    run(planner, {"text": PROSE, "repeat": True}, retry={"max_attempts": 1})

    assert planner.calls == 1


def test_s1_36_and_s1_38_and_s1_87_the_last_attempt_asks_for_less(planner: Planner) -> None:
    record = run(planner, PROSE, PROSE, PLAN, retry={"max_retries": 3})
    _, second, last = planner.prompts

    assert [row["simplified"] for row in record["attempts"]] == [False, False, True]
    assert "Errors:" in second
    assert "Errors:" in last, "the feedback is kept (X-3)"
    assert len(last) < len(second)
    assert FORMS_LINE in second
    assert FORMS_LINE not in last


def test_s1_37_the_last_attempt_drops_what_is_optional_and_says_so(planner: Planner) -> None:
    constraints = [{"text": "in English"}, {"text": "in rhyme", "optional": True}]

    record = run(planner, PROSE, PLAN, constraints=constraints)

    assert "in rhyme" in planner.prompts[0]
    assert "in rhyme" not in planner.prompts[1]
    assert "in English" in planner.prompts[1]
    assert record["attempts"][1]["dropped_constraints"] == ["in rhyme"]


def test_s1_39_the_last_attempt_names_basic_tools_only(planner: Planner) -> None:
    run(planner, PROSE, PLAN)

    assert "- template:" in planner.prompts[0]
    assert "- template:" not in planner.prompts[1]
    assert "- echo:" in planner.prompts[1]


def test_s1_87_a_single_attempt_is_never_simplified(planner: Planner) -> None:
    record = run(planner, PROSE, retry={"max_retries": 1})

    assert [row["simplified"] for row in record["attempts"]] == [False]
    assert FORMS_LINE in planner.prompts[0]


def test_s1_46_and_s1_61_and_s1_74_a_good_first_answer_is_the_only_call(planner: Planner) -> None:
    record = run(planner, PLAN)

    assert (planner.calls, record["outcome"]) == (1, "ok_first")


def test_s1_46_and_s1_47_and_s1_78_bad_then_good_takes_two_calls(planner: Planner) -> None:
    record = run(planner, PROSE, PLAN)

    assert (planner.calls, record["outcome"]) == (2, "repaired")
    assert record["status"] == "completed"


def test_s1_79_a_hard_goal_succeeds_after_several_retries(planner: Planner) -> None:
    record = run(planner, PROSE, BROKEN, PLAN, retry={"max_retries": 3})

    assert (planner.calls, record["outcome"]) == (3, "repaired")
    assert record["status"] == "completed"


@pytest.mark.parametrize("number", [1, 2, 5])
def test_s1_47_and_s1_75_endless_garbage_ends_after_as_many_calls(
    planner: Planner, number: int
) -> None:
    run(planner, {"text": PROSE, "repeat": True}, retry={"max_retries": number})

    assert planner.calls == number


@pytest.mark.parametrize("number", [0, 6, 10**9, "2"])
def test_s1_75_a_goal_cannot_ask_for_retries_without_bounds(
    api: Api, planner: Planner, number: object
) -> None:
    answer = api.post("goals", {"goal": GOAL, "retry": {"max_retries": number}})

    assert answer.status_code == 422
    assert "max_retries" in answer.content.decode()


def test_s1_65_every_attempt_is_found_by_the_correlation_id(planner: Planner) -> None:
    record = run(planner, PROSE, PLAN, correlation_id="case-7")

    events = Event.objects.filter(correlation_id="case-7").order_by("occurred_at")
    assert [event.name for event in events] == ["graph.plan.parse_invalid", "graph.plan.succeeded"]
    assert [event.attempt for event in events] == [1, 2]
    assert record["correlation_id"] == "case-7"


@pytest.mark.slow
@pytest.mark.parametrize("error", ["provider_error", "rate_limited", "timeout"])
def test_s1_69_a_fault_of_the_network_is_not_counted_as_a_parse_failure(
    planner: Planner, error: str
) -> None:
    record = run(planner, {"error": error, "repeat": True})

    assert events_named(record, "parse_invalid") == []
    assert not any("Errors:" in prompt for prompt in planner.prompts)
    assert record["error"] is None


def test_s1_70_a_valid_plan_that_does_the_wrong_thing_is_not_retried(planner: Planner) -> None:
    wrong = PLAN.replace('"hi"', '"goodbye"')

    assert run(planner, wrong)["outcome"] == "ok_first"
    assert planner.calls == 1


def test_s1_1_and_s1_2_the_four_names_and_their_defaults_stand_with_the_goal(
    planner: Planner,
) -> None:
    record = run(planner, PLAN)

    assert record["retry"] == {
        "max_retries": 2,
        "send_error_feedback": True,
        "simplify_on_final_attempt": True,
        "use_stub_fallback": False,
    }
    assert record["retry"] == RetryConfig().model_dump()
