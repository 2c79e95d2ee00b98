"""Goals over REST: what is accepted, what is refused and how it is said."""

import csv
import io
import json
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from agents.goals import submission
from agents.goals.models import Goal
from agents.goals.submission import digest_key
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.store.models import OutboxMessage
from tests.agents.conftest import ASK, FINISH, PLAN, Api, Planner, tables_holding, work_off
from tests.failsoft.redaction.made_up import make

KIBIBYTE = 1024


def test_a_goal_is_accepted_run_and_can_be_followed(planner: Planner, api: Api) -> None:
    planner.will_say(PLAN)

    answer = api.post("goals", {"goal": "Say hi", "correlation_id": "run-1"})
    assert answer.status_code == 202
    assert answer.json()["status"] == "queued"
    assert answer.json()["correlation_id"] == "run-1"
    work_off()
    record = api.get("goals/run-1").json()

    assert record["status"] == record["state"]["status"] == "completed"
    assert record["plan"]["steps"][0]["step_id"] == "step_1"
    assert record["results"][-1]["task_status"] == "COMPLETED"
    assert [event["name"] for event in record["events"]] == ["graph.plan.succeeded"]
    assert record["reference"] == "run-1"


def test_the_whole_documented_body_is_accepted(planner: Planner, api: Api) -> None:
    body = {
        "goal": "Say hi",
        "mode": "plan",
        "provider": None,
        "model": None,
        "runner": "inline",
        "tools": ["echo"],
        "constraints": [{"text": "briefly", "optional": True}],
        "toolset": None,
        "retry": {
            "max_attempts": 2,
            "send_error_feedback": True,
            "simplify_on_final_attempt": True,
            "use_stub_fallback": False,
        },
        "completion_check": None,
        "max_iterations": 3,
        "budget": {"calls": 10, "tokens": 20000, "seconds": 120},
        "correlation_id": None,
    }

    assert api.post("goals", body).status_code == 202


REFUSED = [
    # the body, the field that is named, the code
    ({"goal": ""}, "/goal", "goal_empty"),
    ({"goal": " \n "}, "/goal", "goal_empty"),
    ({}, "/goal", "missing"),
    ({"goal": 7}, "/goal", "string_type"),
    ({"goal": "x" * (32 * KIBIBYTE + 1)}, "/goal", "goal_too_long"),
    ({"goal": "é" * (16 * KIBIBYTE + 1)}, "/goal", "goal_too_long"),
    ({"goal": "hi", "model": "no-such-model"}, "/model", "unknown_model"),
    ({"goal": "hi", "provider": "nobody"}, "/provider", "unknown_provider"),
    ({"goal": "hi", "tools": ["echo", "ecko"]}, "/tools/1", "unknown_tool"),
    ({"goal": "hi", "tools": ["fail"]}, "/tools/0", "unknown_tool"),
    ({"goal": "hi", "retry": {"max_attempts": 6}}, "/retry/max_attempts", "less_than_equal"),
    ({"goal": "hi", "retry": {"max_retries": "2"}}, "/retry/max_retries", "int_type"),
    ({"goal": "hi", "retry": {"max_retries": 2, "max_attempts": 3}}, "/retry", "conflicting_names"),
    ({"goal": "hi", "retry": {"tries": 2}}, "/retry/tries", "extra_forbidden"),
    ({"goal": "hi", "budget": {"calls": 0}}, "/budget/calls", "greater_than_equal"),
    ({"goal": "hi", "max_iterations": 21}, "/max_iterations", "less_than_equal"),
    ({"goal": "hi", "colour": "red"}, "/colour", "extra_forbidden"),
    ({"goal": "hi", "mode": "dance"}, "/mode", "literal_error"),
    ([], "", "object_type"),
]


@pytest.mark.parametrize(
    ("body", "path", "code"), REFUSED, ids=[f"{n}{row[1]}" for n, row in enumerate(REFUSED)]
)
def test_bad_input_is_refused_with_the_field(
    planner: Planner, api: Api, body: object, path: str, code: str
) -> None:
    answer = api.post("goals", body)

    assert answer.status_code == 422
    assert [(error["path"], error["code"]) for error in answer.json()["errors"]] == [(path, code)]
    assert answer.json()["errors"][0]["message"]
    assert not Goal.objects.exists()


def test_a_goal_of_a_mebibyte_is_refused_with_the_field(planner: Planner, api: Api) -> None:
    answer = api.post("goals", json.dumps({"goal": "x" * KIBIBYTE**2}).encode())

    assert answer.status_code == 422
    assert [error["path"] for error in answer.json()["errors"]] == ["/goal"]
    assert not Goal.objects.exists()


def test_a_body_beyond_all_bounds_is_refused(planner: Planner, api: Api) -> None:
    answer = api.post("goals", json.dumps({"goal": "x" * 5 * KIBIBYTE**2}).encode())

    assert answer.status_code == 413
    assert not Goal.objects.exists()


def test_a_body_that_is_no_json_is_refused_with_its_place(planner: Planner, api: Api) -> None:
    answer = api.post("goals", b'{"goal": "hi",\n oops}')

    assert answer.status_code == 400
    assert (answer.json()["line"], answer.json()["column"]) == (2, 2)


def test_the_same_key_gives_the_same_goal(planner: Planner, api: Api) -> None:
    headers = {"Idempotency-Key": "once"}

    first = api.post("goals", {"goal": "hi"}, **headers)
    again = api.post("goals", {"goal": "hi"}, **headers)

    assert first.json()["id"] == again.json()["id"]
    assert Goal.objects.count() == OutboxMessage.objects.count() == 1


def test_a_key_is_kept_as_a_digest_only(planner: Planner, api: Api) -> None:
    secret, _ = make("sk-proj-{alnum:48}", Random("idempotency"))

    first = api.post("goals", {"goal": "hi"}, **{"Idempotency-Key": secret})
    again = api.post("goals", {"goal": "hi"}, **{"Idempotency-Key": secret})

    assert first.json()["id"] == again.json()["id"]
    assert tables_holding(secret[8:40]) == []


def test_the_same_key_in_another_project_is_another_goal(planner: Planner, api: Api) -> None:
    other = Project.objects.create(slug="other", name="Other")
    body = {"goal": "hi", "plan": json.loads(PLAN)}
    headers = {"Idempotency-Key": "once"}

    first = api.post("goals", body, **headers)
    second = Api(issue_key(other, "k", list(Scope)).text).post("goals", body, **headers)

    assert first.json()["id"] != second.json()["id"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_key_of_before_the_upgrade_still_finds_its_goal() -> None:
    project = Project.objects.create(slug="old", name="Old")
    executor = MigrationExecutor(connection)
    executor.migrate([("agents", "0001_squashed_0_1_0")])
    old = executor.loader.project_state([("agents", "0001_squashed_0_1_0")]).apps
    goals = [
        old.get_model("agents", "Goal")(
            id=uuid4(), project_id=project.pk, correlation_id=key, idempotency_key=key
        )
        for key in ("once", "\u00fcber")
    ]
    old.get_model("agents", "Goal").objects.bulk_create(goals)
    MigrationExecutor(connection).migrate(executor.loader.graph.leaf_nodes())

    found = {key: digest_key(project.pk, key) for key in ("once", "\u00fcber")}
    stored = dict(Goal.objects.values_list("correlation_id", "idempotency_digest"))
    assert stored == found


def test_the_same_key_for_another_body_is_a_conflict(planner: Planner, api: Api) -> None:
    api.post("goals", {"goal": "hi"}, **{"Idempotency-Key": "once"})

    answer = api.post("goals", {"goal": "ho"}, **{"Idempotency-Key": "once"})

    assert answer.status_code == 409
    assert Goal.objects.count() == 1


def test_two_requests_with_one_key_at_once_make_one_goal(
    planner: Planner, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = api.post("goals", {"goal": "hi"}, **{"Idempotency-Key": "once"})
    look, misses = submission._find_earlier, [True]

    def too_early(*given: Any) -> Goal | None:
        return None if misses and misses.pop() else look(*given)

    monkeypatch.setattr(submission, "_find_earlier", too_early)
    second = api.post("goals", {"goal": "hi"}, **{"Idempotency-Key": "once"})

    assert second.json()["id"] == first.json()["id"]
    assert Goal.objects.count() == OutboxMessage.objects.count() == 1


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_a_key_of_no_or_too_many_characters_is_refused(
    planner: Planner, api: Api, key: str
) -> None:
    answer = api.post("goals", {"goal": "hi"}, **{"Idempotency-Key": key})

    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid"
    assert [error["code"] for error in answer.json()["errors"]] == ["idempotency_key"]


def test_a_taken_correlation_id_is_a_conflict(planner: Planner, api: Api) -> None:
    api.post("goals", {"goal": "hi", "correlation_id": "run-1"})

    answer = api.post("goals", {"goal": "ho", "correlation_id": "run-1"})

    assert answer.status_code == 409
    assert answer.json()["errors"][0]["path"] == "/correlation_id"


def test_an_unreachable_provider_ends_the_goal_with_a_reason(planner: Planner, api: Api) -> None:
    provider = planner.language_model.provider
    provider.adapter, provider.base_url = "openai", "http://127.0.0.1:1/v1"
    provider.save()

    api.post("goals", {"goal": "hi", "correlation_id": "run-1"})
    work_off()
    record = api.get("goals/run-1").json()

    assert (record["status"], record["outcome"]) == ("failed", "provider_failed")
    assert record["execution_eval"]["reason"] == "provider_failed"
    assert record["attempts"][0]["errors"][0]["message"] == "the provider cannot be reached"
    assert record["attempts"][0]["transport_retries"] == 2


def test_a_waiting_goal_is_answered(planner: Planner, api: Api) -> None:
    planner.will_say(ASK, FINISH)
    api.post("goals", {"goal": "hi", "mode": "next_step", "correlation_id": "run-1"})
    work_off()
    assert api.get("goals/run-1").json()["next_user_question"] == "Which city?"

    assert api.post("goals/run-1/answer", {"text": "Oslo"}).status_code == 202
    work_off()

    assert api.get("goals/run-1").json()["status"] == "completed"
    assert api.post("goals/run-1/answer", {"text": "Rome"}).status_code == 409


@pytest.mark.parametrize(
    "body", [{}, {"text": ""}, {"text": "a", "confirmed": True}, {"secret": "hunter2"}, {"a": 1}]
)
def test_an_answer_that_is_none_is_refused(
    planner: Planner, api: Api, body: dict[str, object]
) -> None:
    planner.will_say(ASK)
    api.post("goals", {"goal": "hi", "mode": "next_step", "correlation_id": "run-1"})
    work_off()

    assert api.post("goals/run-1/answer", body).status_code == 422
    assert api.get("goals/run-1").json()["status"] == "waiting_user"


def test_a_goal_is_cancelled(planner: Planner, api: Api) -> None:
    api.post("goals", {"goal": "hi", "correlation_id": "run-1"})

    answer = api.post("goals/run-1/cancel")

    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")
    assert planner.calls == 0


def test_an_ended_goal_is_not_cancelled(planner: Planner, api: Api) -> None:
    planner.will_say(FINISH)
    api.post("goals", {"goal": "hi", "mode": "next_step", "correlation_id": "run-1"})
    work_off()

    assert api.post("goals/run-1/cancel").status_code == 409


def test_goals_are_listed_newest_first_page_by_page(planner: Planner, api: Api) -> None:
    for number in range(5):
        api.post("goals", {"goal": "hi", "correlation_id": f"run-{number}"})

    first = api.get("goals", limit="3").json()
    second = api.get("goals", limit="3", cursor=first["next"]).json()

    listed = [item["correlation_id"] for item in first["items"] + second["items"]]
    assert listed == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    assert second["next"] is None


def test_the_list_is_filtered(planner: Planner, api: Api) -> None:
    planner.run("no", "no", correlation_id="bad")
    planner.run(FINISH, correlation_id="good")

    assert [i["correlation_id"] for i in api.get("goals", status="failed").json()["items"]] == [
        "bad"
    ]
    assert [i["correlation_id"] for i in api.get("goals", q="goo").json()["items"]] == ["good"]
    assert api.get("goals", cursor="nonsense").status_code == 400


def test_a_goal_of_another_project_is_not_found(planner: Planner, api: Api) -> None:
    api.post("goals", {"goal": "hi", "correlation_id": "run-1"})
    other = Api(issue_key(Project.objects.create(slug="other"), "other", list(Scope)).text)

    assert other.get("goals/run-1").status_code == 404
    assert other.post("goals/run-1/cancel").status_code == 404
    assert other.get("goals").json()["items"] == []


@pytest.mark.parametrize(("scope", "status"), [("ingest", 403), ("read", 403), ("admin", 202)])
def test_submitting_needs_the_admin_scope(planner: Planner, scope: str, status: int) -> None:
    key = issue_key(planner.project, "narrow", [Scope(scope)])

    assert Api(key.text).post("goals", {"goal": "hi"}).status_code == status


def test_nobody_without_a_key_gets_in(planner: Planner) -> None:
    assert Client().get("/api/v1/goals").status_code == 401


def test_the_examples_that_a_failed_goal_leads_to_are_there(client: Client, db: None) -> None:
    answer = client.get("/help/patterns/")

    assert answer.status_code == 200
    assert "One outcome" in answer.content.decode()


def listed(api: Api, **query: str) -> list[str]:
    answer = api.get("goals", **query)
    assert answer.status_code == 200, answer.content
    return sorted(item["correlation_id"] for item in answer.json()["items"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"outcome": "degraded"}, ["bad"]),
        ({"kind": "not_json"}, ["bad"]),
        ({"kind": "degraded"}, ["bad"]),
        ({"kind": "succeeded"}, ["good"]),
        ({"attempt": "2"}, ["bad"]),
        ({"q": "-attempt:2"}, ["good"]),
        ({"node": "next_step"}, ["bad", "good"]),
        ({"q": "corr:go"}, ["good"]),
        ({"correlation_id": "go"}, []),
        ({"q": "-corr:go"}, ["bad"]),
        ({"provider": "nobody"}, []),
        ({"source": "planner"}, ["bad", "good"]),
        ({"environment": "-"}, ["bad", "good"]),
        ({"schema": "NextStepProposal"}, ["bad", "good"]),
        ({"q": "reason:next_step_parse_failed"}, ["bad"]),
        ({"range": "1h"}, ["bad", "good"]),
        ({"to": "2026-01-01T00:00:00Z"}, []),
        ({"mode": "plan"}, []),
        ({"q": "nowhere"}, []),
    ],
    ids=str,
)
def test_goals_are_narrowed_by_every_filter_of_the_bar(
    planner: Planner, api: Api, query: dict[str, str], found: list[str]
) -> None:
    planner.run("no", "no", correlation_id="bad")
    planner.run(FINISH, correlation_id="good")

    assert listed(api, **query) == found


@pytest.mark.parametrize(
    "query", [{"status": "x"}, {"mode": "x"}, {"colour": "red"}, {"q": "colour:red"}], ids=str
)
def test_a_filter_of_goals_that_is_wrong_is_named(
    planner: Planner, api: Api, query: dict[str, str]
) -> None:
    assert api.get("goals", **query).status_code == 400


def test_goals_are_streamed_as_csv_and_json_lines(planner: Planner, api: Api) -> None:
    for number in range(3):
        order = {"goal": "=1+1", "correlation_id": f"run-{number}"}
        api.post("goals", order)

    written = api.get("goals", format="csv")
    rows = list(csv.DictReader(io.StringIO(written.getvalue().decode())))
    assert [row["correlation_id"] for row in rows] == ["run-2", "run-1", "run-0"]
    assert {row["goal"] for row in rows} == {"'=1+1"}

    lines = api.get("goals", format="ndjson", limit="2").getvalue().decode()
    assert [json.loads(line)["correlation_id"] for line in lines.splitlines()] == ["run-2", "run-1"]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"provider": "a\0b"}, 422),
        ({"model": "a\0b"}, 422),
        ({"constraints": [{"text": "briefly\0"}]}, 202),
        ({"completion_check": {"kind": "model", "instructions": "all\0 of it"}}, 202),
    ],
)
def test_a_character_that_cannot_be_stored_is_no_internal_error(
    planner: Planner, api: Api, changes: dict[str, Any], status: int
) -> None:
    answer = api.post("goals", {"goal": "Say hi", **changes})
    assert answer.status_code == status
    if status == 422:
        assert answer.json()["errors"][0]["path"] == f"/{next(iter(changes))}"
