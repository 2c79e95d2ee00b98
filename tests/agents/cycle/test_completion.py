"""Goals that are complete when their check says so: the loop of plan, do, check, act (s3)."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import structlog
from pydantic import BaseModel

from agents.breakers.store import Guard
from agents.cycle.model_check import check_prompt
from agents.cycle.running import run_goal
from agents.goals.models import Goal
from agents.goals.records import goal_record, owners_of_workspaces
from agents.goals.submission import cancel_goal
from diagnostics.accounts.models import Project
from diagnostics.store.models import OutboxMessage
from failsoft.completion import CheckDecision, resolve_completion_decision
from failsoft.retry.prompts import Prompt
from plans.models.check import CompletionCheck
from plans.models.run import Run
from plans.tools import registry
from tests.agents.conftest import (
    ASK,
    CALL_ECHO,
    FINISH,
    PLAN,
    Api,
    Planner,
    Record,
    events_named,
    let_time_pass,
    tables_holding,
)
from tests.failsoft.redaction.made_up import make

RUNNERS = Run.Runner.values
STEPS = {"steps": [{"step_id": "step_1", "tool": "echo", "args": {"t": "${feedback}"}}]}
Answer = str | dict[str, Any]


class CheckArgs(BaseModel):
    """What a tool may ask to be told."""

    check_id: str
    iteration: int
    results: list[Any]
    task_status: str | None = None


class Checker:
    """A tool that answers from a list, `<id>` standing for the id it was given."""

    def __init__(self) -> None:
        self.answers: list[Answer | Exception] = []
        self.asked: list[CheckArgs] = []

    def will_say(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)

    def __call__(self, args: CheckArgs) -> object:
        self.asked.append(args)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return text.replace("<id>", args.check_id)


@pytest.fixture
def checker() -> Iterator[Checker]:
    """A registered tool `judge` that answers from a list."""
    judge = Checker()
    registry.tool("judge", CheckArgs, description="Judge.", offered=False)(judge)
    yield judge
    del registry._tools["judge"]


@pytest.fixture(autouse=True)
def workspaces(settings: Any, tmp_path: Path) -> Path:
    """A folder of its own for checks."""
    settings.FAILSOFT_WORKSPACE_DIR = tmp_path / "spaces"
    return tmp_path / "spaces"


YES = {"decision": "complete", "check_id": "<id>"}
NO = {
    "decision": "incomplete",
    "check_id": "<id>",
    "reasons": ["add tests"],
    "fingerprints": ["missing-tests"],
}
UNDECIDABLE = "I have looked at it."


def run(planner: Planner, check: dict[str, Any] | None = None, **order: Any) -> Record:
    """Submit a goal that brings its plan and is checked by the tool; work it off."""
    order = {"max_iterations": 5, "plan": STEPS, "mode": "plan", **order}
    spec = {"kind": "tool", "tool": "judge", **(check or {})}
    return planner.finish(planner.submit(completion_check=spec, **order))


def test_s3_41_fail_then_fix_then_pass_completes_in_the_second_iteration(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(NO, YES)
    record = run(planner)

    assert (record["status"], record["cycle"]) == ("completed", 2)
    assert [item["decision"] for item in record["decisions"]] == ["incomplete", "complete"]
    # What was found missing reached the next iteration.
    assert record["results"][0]["output"] == {"t": "add tests"}


def test_s3_22_reasons_reach_the_next_planning_as_feedback(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(NO, YES)
    planner.will_say(PLAN, PLAN)
    record = run(planner, plan=None)

    assert record["status"] == "completed"
    assert "cycle 1, completion check: incomplete - add tests" in planner.prompts[1]


@pytest.mark.parametrize("runner", RUNNERS)
def test_s3_42_a_loop_of_legacy_markers_works_as_before(
    planner: Planner, checker: Checker, runner: str
) -> None:
    checker.will_say("INCOMPLETE\nmissing tests", "all good\nCOMPLETE")
    record = run(planner, runner=runner)

    assert (record["status"], record["cycle"]) == ("completed", 2)
    assert {item["source"] for item in record["decisions"]} == {"marker"}


def test_s3_1_s3_13_s3_45_what_cannot_be_decided_is_not_a_failure(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(UNDECIDABLE, YES)
    record = run(planner)
    first, second = record["decisions"]

    assert (first["decision"], first["failed"]) == ("undecidable", False)
    assert first["reason"] == "missing_decision"
    assert (second["decision"], record["status"]) == ("complete", "completed")


def test_s3_4_three_undecidable_checks_then_complete_succeeds(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(UNDECIDABLE, UNDECIDABLE, UNDECIDABLE, YES)
    record = run(planner, {"undecidable_limit": 0})

    assert (record["status"], record["cycle"]) == ("completed", 4)


def test_s3_24_s3_35_the_count_is_kept_with_each_check(planner: Planner, checker: Checker) -> None:
    checker.will_say(UNDECIDABLE, UNDECIDABLE, NO, UNDECIDABLE, YES)
    record = run(planner)

    counts = [item["undecidable_in_a_row"] for item in record["decisions"]]
    assert counts == [1, 2, 0, 1, 0]


def test_s3_25_the_check_past_the_threshold_fails_with_count_and_cause(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say('{"decision": "comp')
    record = run(planner, {"undecidable_limit": 2})

    assert (record["status"], record["cycle"]) == ("failed", 3)
    assert record["execution_eval"]["reason"] == "undecidable_limit_exceeded"
    message = record["execution_eval"]["message"]
    assert "3 checks in a row" in message
    assert "truncated" in message
    assert "could not decide" in record["user_text"]


def test_s3_23_always_undecidable_stops_at_the_last_iteration_with_a_reason(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(UNDECIDABLE)
    record = run(planner, {"undecidable_limit": 50}, max_iterations=4)

    assert (record["status"], len(record["decisions"])) == ("failed", 4)
    assert record["execution_eval"]["reason"] == "max_iterations_reached"
    assert record["execution_eval"]["message"] == "not complete after 4 iterations"


def test_an_exhausted_loop_that_may_continue_ends_without_failing(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(NO)
    record = run(planner, {"on_exhausted": "continue"}, max_iterations=2)

    assert record["status"] == "completed"
    assert record["execution_eval"]["complete"] is False
    assert "did not find it complete" in record["user_text"]


def test_s3_46_ten_iterations_go_their_way_without_flapping(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(*[NO] * 9, YES)
    record = run(planner, max_iterations=10)

    assert (record["status"], record["cycle"]) == ("completed", 10)
    decisions = [item["decision"] for item in record["decisions"]]
    assert decisions == ["incomplete"] * 9 + ["complete"]
    assert [item["same_in_a_row"] for item in record["decisions"]][:9] == list(range(1, 10))
    assert [item["stalled"] for item in record["decisions"]].index(True) == 2


def test_a_stalled_loop_ends_where_its_policy_says_so(planner: Planner, checker: Checker) -> None:
    checker.will_say(NO)
    record = run(planner, {"on_stalled": "abort", "stalled_after": 2})

    assert (record["status"], record["cycle"]) == ("failed", 2)
    assert record["execution_eval"]["reason"] == "stalled"


def test_s3_15_reasons_and_fingerprints_are_stored_and_shown(
    planner: Planner, checker: Checker, api: Api
) -> None:
    checker.will_say(NO, YES)
    record = run(planner)
    shown = api.get(f"goals/{record['correlation_id']}").json()

    assert shown["decisions"][0]["reasons"] == ["add tests"]
    assert shown["decisions"][0]["fingerprints"] == ["missing-tests"]
    assert shown["decisions"][0]["check_id"] == checker.asked[0].check_id
    assert shown["decisions"] == record["decisions"]


def test_s3_31_each_check_has_an_id_of_its_own(planner: Planner, checker: Checker) -> None:
    checker.will_say(NO, NO, YES)
    run(planner)

    ids = [asked.check_id for asked in checker.asked]
    assert len(set(ids)) == 3


def test_s3_10_an_answer_with_another_id_is_refused(planner: Planner, checker: Checker) -> None:
    checker.will_say({"decision": "complete", "check_id": "stale"}, YES)
    record = run(planner)

    first = record["decisions"][0]
    assert (first["decision"], first["check_id_match"]) == ("incomplete", False)
    assert 'got "stale"' in first["reason"]


def test_the_checker_sees_what_the_run_did(planner: Planner, checker: Checker) -> None:
    checker.will_say(YES)
    run(planner)

    (asked,) = checker.asked
    assert (asked.iteration, asked.task_status) == (1, "COMPLETED")
    assert asked.results[0]["step_id"] == "step_1"


@pytest.mark.parametrize("fault", [RuntimeError("no disk"), TimeoutError()])
def test_x_9_only_a_checker_that_crashes_fails_the_run(
    planner: Planner, checker: Checker, fault: Exception
) -> None:
    checker.will_say(fault)
    record = run(planner)

    assert (record["status"], record["cycle"]) == ("failed", 1)
    assert record["execution_eval"]["reason"] == "checker_failed"
    assert record["decisions"][0]["failed"] is True
    assert record["decisions"][0]["decision"] is None


def test_a_step_at_a_time_is_checked_when_the_planner_says_finish(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(NO, YES)
    planner.will_say(CALL_ECHO, FINISH, FINISH)
    record = run(planner, plan=None, mode="next_step")

    assert (record["status"], len(record["decisions"])) == ("completed", 2)
    assert record["user_text"] == "All done."


def test_a_goal_that_waits_for_its_user_is_not_checked(planner: Planner, checker: Checker) -> None:
    planner.will_say(ASK)
    record = run(planner, plan=None, mode="next_step")

    assert (record["status"], record["decisions"]) == ("waiting_user", [])


def test_an_iteration_is_decided_once_whatever_is_delivered_twice(
    planner: Planner, checker: Checker, monkeypatch: pytest.MonkeyPatch
) -> None:
    checker.will_say(YES)
    with monkeypatch.context() as broken:
        broken.setattr("agents.cycle.nodes.next_turn", _die)
        with pytest.raises(SystemExit):
            run(planner)
    let_time_pass(61)
    goal = Goal.objects.get()
    run_goal(goal.pk)
    run_goal(goal.pk)

    assert len(checker.asked) == 1
    goal.refresh_from_db()
    assert goal.status == "completed"


def test_an_interrupted_check_is_made_again_with_another_id(
    planner: Planner, checker: Checker, monkeypatch: pytest.MonkeyPatch
) -> None:
    checker.will_say(YES)
    with monkeypatch.context() as broken:
        broken.setattr("plans.checks.rows.run_check", _die)
        with pytest.raises(SystemExit):
            run(planner)
    let_time_pass(61)
    goal = Goal.objects.get()
    run_goal(goal.pk)

    first, second = CompletionCheck.objects.order_by("pk")
    assert (first.state, second.state) == ("interrupted", "decided")
    assert first.check_id != second.check_id
    assert (first.iteration, second.iteration) == (1, 1)
    assert goal_record(Goal.objects.get())["status"] == "completed"


def test_a_goal_cancelled_during_its_run_is_not_checked(planner: Planner, checker: Checker) -> None:
    spec = {"kind": "tool", "tool": "judge"}
    goal = planner.submit(mode="plan", plan=STEPS, completion_check=spec)
    run_goal(goal.pk)
    cancel_goal(goal)
    record = planner.finish(goal)

    assert (record["status"], record["decisions"]) == ("cancelled", [])


def test_s3_14_s3_27_s3_28_s3_29_s3_51_each_check_is_logged(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(UNDECIDABLE, NO, YES)
    with structlog.testing.capture_logs() as logs:
        run(planner)

    told = [entry for entry in logs if entry["event"] == "completion_check"]
    assert [entry["decision_source"] for entry in told] == ["none", "stdout-json", "stdout-json"]
    assert [entry["check_id_match"] for entry in told] == [None, True, True]
    assert told[0]["reason"] == "missing_decision"
    assert (told[0]["undecidable_in_a_row"], told[0]["log_level"]) == (1, "warning")


def test_checks_are_events_of_the_node_completion_check(planner: Planner, checker: Checker) -> None:
    checker.will_say(UNDECIDABLE, YES)
    record = run(planner)

    names = [event["name"] for event in record["events"]]
    assert names == ["graph.completion_check.parse_invalid", "graph.completion_check.succeeded"]
    invalid = record["events"][0]
    assert invalid["parse_error_type"] == "not_json"
    assert invalid["provider"] is None


def test_a_loop_its_checks_could_not_decide_ends_with_one_terminal_event(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(UNDECIDABLE)
    record = run(planner, {"undecidable_limit": 1})

    (event,) = events_named(record, "degraded")
    assert event["reason"] == "completion_check_parse_failed"
    assert (event["attempts"], event["status"]) == (2, "failed")


def test_nothing_a_checker_says_is_kept_unredacted(planner: Planner, checker: Checker) -> None:
    made_up_key, _ = make("ghp_{alnum:36}", Random(3))
    leaking = {**NO, "reasons": [f"key {made_up_key}"], "fingerprints": [made_up_key]}
    checker.will_say(leaking, f"key {made_up_key}", YES)
    run(planner)

    assert tables_holding(made_up_key) == []


def test_s3_7_s3_47_a_model_a_tool_and_the_resolver_decide_alike(
    planner: Planner, checker: Checker
) -> None:
    planner.will_say("INCOMPLETE: nothing done", "COMPLETE")
    record = run(planner, {"kind": "model", "tool": None})

    assert (record["status"], record["cycle"]) == ("completed", 2)
    assert {item["kind"] for item in record["decisions"]} == {"model"}


def test_s3_5_s3_13_a_prompt_of_nonsense_is_no_hard_failure(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    nonsense = Prompt("mumble", "mumble")
    monkeypatch.setattr("agents.cycle.model_check.check_prompt", lambda *given: nonsense)
    planner.will_say("mumble", "COMPLETE")
    record = run(planner, {"kind": "model", "tool": None})

    assert planner.prompts[0] == "mumble"
    assert [item["failed"] for item in record["decisions"]] == [False, False]
    assert record["status"] == "completed"


def test_s3_31_a_model_is_told_the_id_by_value_and_what_was_done(planner: Planner) -> None:
    planner.will_say("INCOMPLETE", "COMPLETE")
    record = run(planner, {"kind": "model", "tool": None, "instructions": "Look at the tests."})

    for prompt, decision in zip(planner.prompts, record["decisions"], strict=True):
        assert f'"{decision["check_id"]}"' in prompt
        assert "step_1 (echo): ok" in prompt
        assert "Look at the tests." in prompt
        # A model that only repeats what it was asked has decided nothing.
        echoed = resolve_completion_decision(None, prompt, decision["check_id"])
        assert echoed.decision != CheckDecision.COMPLETE


def test_the_calls_of_a_checking_model_are_recorded_and_counted(planner: Planner) -> None:
    planner.will_say("no idea", "COMPLETE")
    record = run(planner, {"kind": "model", "tool": None})

    made = [(item["node"], item["state"]) for item in record["attempts"]]
    assert made == [("completion_check", "invalid"), ("completion_check", "valid")]
    assert [event["model"] for event in record["events"]] == ["fake-1", "fake-1"]
    # Nothing was planned by a model: there is no outcome of planning.
    assert record["outcome"] is None


def test_a_checking_model_that_gives_no_answer_has_failed(planner: Planner) -> None:
    planner.will_say({"error": "refused"})
    record = run(planner, {"kind": "model", "tool": None})

    assert record["execution_eval"]["reason"] == "checker_failed"
    (event,) = events_named(record, "degraded")
    assert event["reason"] == "provider_failed"


def test_a_checking_model_stays_within_the_budget(planner: Planner) -> None:
    planner.will_say("INCOMPLETE", "INCOMPLETE", "COMPLETE")
    record = run(planner, {"kind": "model", "tool": None}, budget={"calls": 2})

    assert planner.calls == 2
    assert (record["status"], record["outcome"]) == ("failed", "budget_exhausted")
    evaluation = record["execution_eval"]
    assert (evaluation["reason"], evaluation["spent"]) == ("budget_exhausted", "calls")
    # The provider was not asked: nothing is said against it.
    assert [item["decision"] for item in record["decisions"]] == ["incomplete", "incomplete"]
    assert events_named(record, "provider_error") == events_named(record, "degraded") == []


def test_a_checking_model_keeps_the_probe_of_its_breaker_while_it_thinks(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[str] = []
    monkeypatch.setattr("agents.cycle.model_check.RENEW_SECONDS", 0.01)
    monkeypatch.setattr(Guard, "renew", lambda guard: renewed.append(guard.transport.operation))
    planner.will_say({"text": "COMPLETE", "delay_seconds": 0.2})
    run(planner, {"kind": "model", "tool": None})

    assert set(renewed) == {"completion_check"}


def test_s3_49_whether_a_review_is_right_is_not_judged(planner: Planner, checker: Checker) -> None:
    checker.will_say({**YES, "reasons": ["I did not look"]})

    assert run(planner)["status"] == "completed"


def test_s3_50_a_loop_that_always_fails_is_ended_and_not_mended(
    planner: Planner, checker: Checker
) -> None:
    checker.will_say(NO)
    record = run(planner, max_iterations=3)

    assert record["status"] == "failed"
    tools = {item["plan"]["steps"][0]["tool"] for item in record["runs"]}
    assert (tools, len(record["runs"])) == ({"echo"}, 3)


@pytest.mark.parametrize(
    ("order", "path", "code"),
    [
        ({"completion_check": {"kind": "tool"}}, "/completion_check/tool", "missing"),
        (
            {"completion_check": {"kind": "tool", "tool": "nobody"}},
            "/completion_check/tool",
            "unknown_tool",
        ),
        (
            {"completion_check": {"kind": "command", "command": "rm"}},
            "/completion_check/command",
            "unknown_command",
        ),
        (
            {"completion_check": {"kind": "model", "nonsense": 1}},
            "/completion_check/nonsense",
            "extra_forbidden",
        ),
        (
            {"completion_check": {"kind": "tool", "tool": "echo", "decision_file": "../x"}},
            "/completion_check/decision_file",
            "path_refused",
        ),
        (
            {"mode": "actions", "toolset": "entries", "completion_check": {"kind": "model"}},
            "/completion_check",
            "not_wanted",
        ),
        ({"plan": {"steps": []}}, "/plan/steps", "steps_empty"),
        ({"plan": STEPS, "mode": "next_step"}, "/plan", "not_wanted"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_its_place(
    planner: Planner, api: Api, order: dict[str, Any], path: str, code: str
) -> None:
    answer = api.post("goals", {"goal": "x", **order})

    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["path"], error["code"]) == (path, code)


def _die(*given: object, **named: object) -> None:
    raise SystemExit(9)


def test_s20_a_check_reaches_no_file_of_another_project(planner: Planner, workspaces: Path) -> None:
    goals = {}
    for name in ("first", "second"):
        planner.project = Project.objects.create(slug=name, name=name)
        spec = {"kind": "tool", "tool": "echo", "workspace": "support"}
        goals[name] = planner.submit(
            completion_check={**spec, "decision_file": "notes.txt"},
            plan=STEPS,
            mode="plan",
            max_iterations=1,
        )
    first, second = (goal.project_id for goal in goals.values())
    theirs = workspaces / str(first) / "support" / "notes.txt"
    earlier = workspaces / "support" / "notes.txt"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("what an earlier release left", encoding="utf-8")

    OutboxMessage.objects.filter(kwargs__goal_id=str(goals["first"].pk)).delete()
    planner.finish(goals["second"])

    assert CompletionCheck.objects.get().project_id == second
    assert not earlier.exists()
    assert theirs.read_text(encoding="utf-8") == "what an earlier release left"
    assert (workspaces / str(second) / "support").is_dir()


def test_the_folder_of_an_earlier_goal_is_its_projects(planner: Planner) -> None:
    goal = planner.submit(completion_check={"kind": "tool", "tool": "echo"})

    assert owners_of_workspaces([str(goal.pk), "unknown"]) == {str(goal.pk): planner.project.pk}


def test_a_checking_model_sees_the_last_steps_of_a_long_run() -> None:
    results = [
        {"step_id": f"step_{number}", "tool": "echo", "ok": True, "output": "x" * 400}
        for number in range(1, 101)
    ]
    user = check_prompt("Say hello", 1, results, None, "an-id").user
    assert "step_100 (echo): ok" in user
    assert "step_1 (echo)" not in user
