"""A goal's page."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from agents.goals.models import Goal
from agents.goals.records import goal_path
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.failures.models import FailureGroup
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from failsoft.events import ParseErrorType
from plans.models.run import RunStep
from tests.agents.conftest import Planner
from tests.agents.console.conftest import Read
from tests.console import make_attempt, make_goal, make_meta, make_run
from tests.diagnostics.builders import make_event

STEPS: list[dict[str, Any]] = [
    {"step_id": "step_1", "ok": True, "skipped": False, "output": {"text": "hello"}},
    {
        "step_id": "step_2",
        "dependencies": ["step_1"],
        "ok": False,
        "skipped": False,
        "error": "the tool raised",
    },
    {
        "step_id": "step_3",
        "dependencies": ["step_2"],
        "ok": False,
        "skipped": True,
        "reason": "step_2 failed",
    },
]


@pytest.fixture
def failed_run(project: Project) -> Goal:
    goal = make_goal(project, status="failed", outcome="ok_first")
    meta = make_meta("FAILED", 1, 1, 1)
    make_run(goal, STEPS, {**meta, "failed_steps": ["step_2"], "blocked_steps": ["step_3"]})
    return goal


def test_attempt_shows_kind_model_and_figures(project: Project, read: Read) -> None:
    make_attempt(make_goal(project), 1, error_type="truncated", finish_reason="length")
    html = read("/runs/run-1/")
    assert "1 · truncated" in html
    assert "fake/fake-1" in html
    assert "911 tokens in, 12 out" in html
    assert "finish reason length" in html


def test_the_headline_counts_the_attempts_at_one_answer(project: Project, read: Read) -> None:
    goal = make_goal(project, status="completed", outcome="repaired")
    make_attempt(goal, 1, cycle=1)
    make_attempt(goal, 2, cycle=1, state="valid")
    make_attempt(goal, 1, cycle=1, state="valid", node="completion_check")
    make_attempt(goal, 1, cycle=2, state="valid")
    assert "Completed: valid plan, recovered after 2 attempts" in read("/runs/run-1/")


def test_error_shows_path_message_and_place(project: Project, read: Read) -> None:
    make_attempt(make_goal(project))
    html = read("/runs/run-1/")
    assert "<code>/steps/0/tool</code>" in html
    assert "field required" in html
    assert "line 2, column 3" in html


def test_preview_marks_the_offending_line_and_character(project: Project, read: Read) -> None:
    make_attempt(make_goal(project))
    html = read("/runs/run-1/")
    assert '<span class="ln faulty" data-n="2">  <mark>{</mark>' in html
    assert '<span class="ln caret" aria-hidden="true">  ^</span>' in html


def test_repairs_coercions_and_dropped_constraints_are_shown(project: Project, read: Read) -> None:
    make_attempt(
        make_goal(project),
        2,
        repairs=[{"kind": "fence", "line": 1, "column": 1, "lossless": True}],
        coerced=[{"kind": "null_to_list", "path": "/steps/0", "line": 1, "column": 9}],
        dropped_constraints=[{"text": "be brief", "optional": True}],
        feedback="The answer was not JSON.",
        simplified=True,
    )
    html = read("/runs/run-1/")
    for text in ("fence 1:1", "null_to_list /steps/0 1:9", "be brief"):
        assert text in html
    assert "Feedback sent with attempt 2, simplified" in html
    assert "The answer was not JSON." in html


def test_s2_44_steps_show_ok_skipped_reason_error_and_output(failed_run: Goal, read: Read) -> None:
    html = read(goal_path(failed_run))
    for state in ("OK", "Failed", "Skipped"):
        assert f"</svg>{state}</span>" in html
    assert "the tool raised" in html
    assert "step_2 failed" in html
    assert "&quot;text&quot;: &quot;hello&quot;" in html


def test_plan_is_drawn_with_a_text_alternative(failed_run: Goal, read: Read) -> None:
    html = read(goal_path(failed_run))
    assert (
        'aria-label="plan of 3 steps: step_1 ok; step_2 failed after step_1; '
        'step_3 skipped after step_2"'
    ) in html
    assert html.count('class="edge') == 2


def test_meta_is_shown_with_its_task_status(failed_run: Goal, read: Read) -> None:
    html = read(goal_path(failed_run))
    assert "<code>__meta__</code> FAILED · blocked: step_3 · failed: step_2" in html
    assert "&quot;total_steps&quot;: 3" in html


def test_s2_3_results_that_break_the_contract_are_called_out(failed_run: Goal, read: Read) -> None:
    assert "Contract violations" not in read(goal_path(failed_run))
    RunStep.objects.filter(step_id="step_1").update(ok=False)
    assert "Contract violations" in read(goal_path(failed_run))


def test_degraded_goal_tells_its_story(planner: Planner, read: Read) -> None:
    record = planner.run("not json", "still not")
    html = read(f"/runs/{record['correlation_id']}/")
    assert "Degraded: no valid next step after 2 attempts" in html
    assert "graph.next_step.degraded" in html
    assert "next_step_parse_failed" in html
    assert record["user_text"].split(".")[0] in html
    assert "not json" in html


def test_degraded_goal_says_what_one_more_attempt_would_have_brought(
    planner: Planner, read: Read
) -> None:
    told = planner.run("not json", "still not")
    page = f"/runs/{told['correlation_id']}/"
    assert "One more attempt" not in read(page)

    third = make_event(
        name="graph.next_step.succeeded",
        attempt=3,
        provider=planner.language_model.provider.name,
        model=planner.language_model.name,
        environment=None,
        occurred_at=clock.now().isoformat(),
    )
    failed = third.model_copy(
        update={
            "name": "graph.next_step.parse_invalid",
            "parse_error_type": ParseErrorType.NOT_JSON,
        }
    )
    rows = [
        one.model_copy(update={"event_id": uuid4(), "correlation_id": f"other-{n}"})
        for n, one in enumerate([third] * 18 + [failed] * 6)
    ]
    record(planner.project.pk, rows)
    fold()
    html = read(page).replace("\u202f", " ")
    assert "One more attempt would have recovered 75 % of such runs (55 % to 88 %" in html
    assert "n = 24 attempts 3 of this model and node" in html


def test_completed_goal_tells_its_story(planner: Planner, read: Read) -> None:
    plan = '{"steps": [{"step_id": "step_1", "tool": {"name": "echo", "args": {}}}]}'
    record = planner.run("nonsense", plan, mode="plan")
    html = read(f"/runs/{record['correlation_id']}/")
    assert "Completed: valid plan, recovered after 2 attempts; 1 of 1 step ok" in html
    assert "</svg>Completed</span>" in html


@pytest.mark.parametrize(
    ("status", "is_polled"),
    [
        ("queued", True),
        ("running", True),
        ("waiting_user", False),  # an answer that is being typed must stay
        ("completed", False),
        ("failed", False),
        ("cancelled", False),
    ],
)
def test_page_is_polled_while_the_goal_runs(
    project: Project, read: Read, status: str, is_polled: bool
) -> None:
    make_goal(project, status=status)
    assert ("data-poll" in read("/runs/run-1/")) is is_polled


def test_running_goal_has_a_cancel_button_and_an_ended_one_has_none(
    project: Project, read: Read
) -> None:
    goal = make_goal(project, status="running")
    assert "/cancel/" in read("/runs/run-1/")
    Goal.objects.filter(pk=goal.pk).update(status="failed")
    assert "/cancel/" not in read("/runs/run-1/")


def test_foreign_and_unknown_goals_are_both_not_found(client: Client) -> None:
    make_goal(Project.objects.create(slug="other", name="Other"), "foreign")
    for reference in ("foreign", "unknown", "%00", "a%2Fb"):
        assert client.get(f"/runs/{reference}/").status_code == 404


@pytest.mark.parametrize("reference", ["new", "..", "a/b", "a b", "ä?#", "x" * 200])
def test_goal_is_reached_whatever_its_reference_is(
    project: Project, client: Client, reference: str
) -> None:
    goal = make_goal(project, reference)
    answer = client.get(goal_path(goal))
    assert answer.status_code == 200
    assert b"Say hello" in answer.content


def test_long_plan_is_paged_and_drawn_in_part(project: Project, read: Read) -> None:
    goal = make_goal(project, status="completed", outcome="ok_first")
    steps = [{"step_id": f"s{n}", "ok": True, "skipped": False} for n in range(130)]
    make_run(goal, steps, make_meta("COMPLETED", 130, 0, 0))
    first = read("/runs/run-1/")
    assert "60 of 130 steps drawn" in first
    assert '<span class="name mono">s99</span>' in first
    assert '<span class="name mono">s100</span>' not in first
    assert '<span class="name mono">s129</span>' in read("/runs/run-1/", **{"from": 100})


@pytest.mark.parametrize("first", ["-1", "x", "²", "9" * 30])
def test_hostile_step_offsets_are_answered(project: Project, client: Client, first: str) -> None:
    make_goal(project)
    assert client.get("/runs/run-1/", {"from": first}).status_code == 200


def test_unchanged_goal_is_answered_with_304(project: Project, client: Client) -> None:
    make_goal(project, status="running")
    tag = client.get("/runs/run-1/")["ETag"]
    again = client.get("/runs/run-1/", headers={"If-None-Match": tag})
    assert again.status_code == 304


def test_query_count_does_not_grow_with_attempts_and_steps(
    project: Project, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    goal = make_goal(project, status="completed", outcome="repaired")
    for number in range(1, 6):
        make_attempt(goal, number)
    make_run(goal, STEPS, make_meta("FAILED", 1, 1, 1))
    at = clock.now().isoformat()
    record(project.pk, [make_event(correlation_id="run-1", occurred_at=at)])
    # Session, user, memberships, goal, attempts, runs, sizes of runs, steps; events, their
    # details, their failure groups; the run's row, prices and tokens.
    with django_assert_num_queries(15):
        client.get("/runs/run-1/")


def test_cycles_are_told_apart(project: Project, read: Read) -> None:
    goal = make_goal(project, cycle=2)
    make_attempt(goal, 1)
    make_attempt(goal, 1, cycle=2, called_at=goal.created_at + timedelta(minutes=1))
    html = read("/runs/run-1/")
    assert html.index("Cycle 1") < html.index("Cycle 2")


def test_what_changed_from_one_attempt_to_the_next_is_told_by_pointer(
    project: Project, read: Read
) -> None:
    goal = make_goal(project)
    make_attempt(goal, 1, preview='{"steps": [{"step_id": "step_1", "tool": "<x>"}]}')
    make_attempt(goal, 2, preview='{"steps": [{"step_id": "step_1", "tool": "echo"}]}')
    html = read("/runs/run-1/")
    assert "1 change from attempt 1" in html
    assert "<code>/steps/0/tool</code>" in html
    assert "<del>&quot;&lt;x&gt;&quot;</del>" in html
    assert "<ins>&quot;echo&quot;</ins>" in html


@pytest.mark.parametrize("text", ["not json", '{"kind": "finish"}'])
def test_the_same_text_twice_is_not_called_the_same_value(
    project: Project, read: Read, text: str
) -> None:
    goal = make_goal(project)
    for number in (1, 2):
        make_attempt(goal, number, preview=text)
    html = read("/runs/run-1/")
    assert "The same text as attempt 1" in html
    assert "the same value" not in html


def test_texts_that_cannot_be_read_are_compared_by_line(project: Project, read: Read) -> None:
    goal = make_goal(project)
    make_attempt(goal, 1, preview="I will\nnot do that")
    make_attempt(goal, 2, preview="I will\nnot do this")
    html = read("/runs/run-1/")
    assert "Changed lines since attempt 1" in html
    assert ">not do that<" in html
    assert 'class="ln gone"' in html


def test_attempts_of_two_nodes_or_cycles_are_not_compared(project: Project, read: Read) -> None:
    goal = make_goal(project, cycle=2)
    make_attempt(goal, 1)
    make_attempt(goal, 1, cycle=2)
    make_attempt(goal, 1, node="completion_check")
    assert "from attempt" not in read("/runs/run-1/")


def test_an_attempt_leads_to_its_failures_and_to_the_lab(project: Project, read: Read) -> None:
    goal = make_goal(project, "run-1")
    make_attempt(goal, 1, node="next_step")
    at = clock.now().isoformat()
    record(project.pk, [make_event(correlation_id="run-1", occurred_at=at)])
    fold()
    group = FailureGroup.objects.get(project=project)
    html = read("/runs/run-1/")
    assert f'href="/failures/{group.pk}/">schema_invalid: 1 failure<' in html
    assert "/lab/?event=" in html


def test_a_run_that_nobody_can_judge_is_called_out(project: Project, read: Read) -> None:
    goal = make_goal(project, status="failed", outcome="ok_first")
    step = {"step_id": "step_1", "ok": False, "skipped": False, "reason": "unknown_outcome"}
    run = make_run(goal, [step], make_meta("FAILED", 0, 1, 0))
    assert f'/plan-runs/{run.pk}/#undecided"' in read("/runs/run-1/")


def test_a_goal_is_exported_as_the_api_gives_it(project: Project, client: Client) -> None:
    goal = make_goal(project)
    make_attempt(goal, 1)
    answer = client.get(f"/goals/{goal.pk}/goal.json")
    assert answer.json()["correlation_id"] == "run-1"
    assert answer.json()["attempts"][0]["error_type"] == "schema_invalid"
    assert "attachment" in answer["Content-Disposition"]
    other = make_goal(Project.objects.create(slug="other", name="Other"), "theirs")
    assert client.get(f"/goals/{other.pk}/goal.json").status_code == 404
