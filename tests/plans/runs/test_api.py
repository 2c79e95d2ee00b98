"""The REST addresses of plans: refusals are located, runs belong to their project."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.store.models import OutboxMessage
from failsoft import VERSION
from failsoft.plans.contract import CONTRACT_VERSION
from plans.models.run import Run, RunStep
from plans.runs.running import execute_run
from plans.runs.submission import submit_run
from tests.plans.driving import deliver

Ask = Callable[..., Any]


@pytest.fixture
def ask(project: Project) -> Ask:
    return _asking(project, ["admin"])


def _asking(project: Project, scopes: list[str]) -> Ask:
    """A client with a key of these scopes: `ask(method, path, body)`."""
    key = issue_key(project, "test", [Scope(scope) for scope in scopes]).text
    client = Client(headers={"Authorization": f"Bearer {key}"})

    def ask(method: str, path: str, body: object = b"", **extra: Any) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = extra.pop("content_type", "application/json")
        return client.generic(method, path, raw, kind, **extra)

    return ask


def test_a_plan_is_accepted_queued_and_can_be_followed(ask: Ask, chain: dict[str, Any]) -> None:
    answer = ask("POST", "/api/v1/plans/runs?correlation_id=mine", chain)
    assert answer.status_code == 202
    queued = answer.json()
    assert queued["status"] == "queued"
    assert queued["correlation_id"] == "mine"
    assert OutboxMessage.objects.count() == 1
    execute_run(Run.objects.get().id)
    run = ask("GET", queued["url"]).json()
    assert (run["status"], run["task_status"]) == ("ended", "COMPLETED")
    assert run["results"][-1]["step_id"] == "__meta__"


def test_s2_2_a_bad_plan_is_refused_with_the_list_of_its_errors(ask: Ask) -> None:
    plan = {"steps": [{"step_id": "a", "tool": ""}, {"step_id": "a", "tool": "echo"}]}
    answer = ask("POST", "/api/v1/plans/runs", plan)
    assert answer.status_code == 422
    errors = [(error["path"], error["code"]) for error in answer.json()["errors"]]
    assert errors == [("/steps/0/tool", "tool_empty"), ("/steps/1/step_id", "step_id_duplicate")]
    assert not Run.objects.exists()


def test_s2_49_errors_are_structured_and_located(ask: Ask) -> None:
    body = b'{\n  "steps": [\n    {"step_id": "a", "tool": 5}]}'
    answer = ask("POST", "/api/v1/plans/runs", body)
    (error,) = answer.json()["errors"]
    assert error == {
        "path": "/steps/0/tool",
        "code": "tool_type",
        "message": "expected a tool name or an object, got a number",
        "line": 3,
        "column": 30,
    }


def test_malformed_json_is_400_with_line_and_column(ask: Ask) -> None:
    answer = ask("POST", "/api/v1/plans/runs", b'{"steps": [\n  {"step_id": }]}')
    assert answer.status_code == 400
    assert (answer.json()["line"], answer.json()["column"]) == (2, 15)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"\xff\xfe", 400),
        (b"NaN", 400),
        (b'{"a": 1, "a": 2}', 400),
        (b"[" * 1_000_000, 400),
        (b" " * (1024 * 1024 + 1), 413),
        (b"null", 422),
        (b'{"steps": ' + b"[" * 70 + b"]" * 70 + b"}", 422),
    ],
)
def test_no_body_is_ever_a_500(ask: Ask, body: bytes, status: int) -> None:
    assert ask("POST", "/api/v1/plans/runs", body).status_code == status
    assert ask("POST", "/api/v1/contract/payload", body).status_code < 500
    assert ask("POST", "/api/v1/contract/results", body).status_code < 500


def test_another_media_type_is_415(ask: Ask) -> None:
    answer = ask("POST", "/api/v1/plans/runs", b"{}", content_type="text/plain")
    assert answer.status_code == 415


def test_a_wrong_correlation_id_is_refused_with_its_name(ask: Ask, chain: dict[str, Any]) -> None:
    answer = ask("POST", f"/api/v1/plans/runs?correlation_id={'x' * 201}", chain)
    assert answer.status_code == 400
    assert "correlation_id" in answer.json()


def test_runs_of_another_project_are_not_found(ask: Ask, chain: dict[str, Any]) -> None:
    other = Project.objects.create(slug="other", name="Other")
    run = submit_run(other.pk, chain, "c")
    assert ask("GET", f"/api/v1/plans/runs/{run.id}").status_code == 404
    assert ask("POST", f"/api/v1/plans/runs/{run.id}/cancel").status_code == 404


@pytest.mark.parametrize(
    ("scope", "submit", "read"), [("ingest", 403, 403), ("read", 403, 200), ("admin", 202, 200)]
)
def test_scopes_decide_what_a_key_may(
    project: Project, chain: dict[str, Any], scope: str, submit: int, read: int
) -> None:
    run = submit_run(project.pk, chain, "c")
    ask = _asking(project, [scope])
    assert ask("POST", "/api/v1/plans/runs", chain).status_code == submit
    assert ask("GET", f"/api/v1/plans/runs/{run.id}").status_code == read


def test_without_a_key_nothing_is_answered(db: None) -> None:
    answer = Client().post("/api/v1/plans/runs", {}, "application/json")
    assert answer.status_code == 401


def test_a_queued_run_can_be_cancelled_and_an_ended_one_cannot(
    ask: Ask, project: Project, chain: dict[str, Any]
) -> None:
    run = submit_run(project.pk, chain, "c")
    assert ask("POST", f"/api/v1/plans/runs/{run.id}/cancel").status_code == 202
    execute_run(run.id)
    assert ask("POST", f"/api/v1/plans/runs/{run.id}/cancel").status_code == 409
    shown = ask("GET", f"/api/v1/plans/runs/{run.id}").json()
    assert shown["task_status"] == "PARTIAL"


def test_s2_3_a_corrupted_run_is_shown_with_its_violations(
    ask: Ask, project: Project, chain: dict[str, Any]
) -> None:
    run = submit_run(project.pk, chain, "c")
    execute_run(run.id)
    RunStep.objects.filter(position=2).delete()
    shown = ask("GET", f"/api/v1/plans/runs/{run.id}").json()
    assert {violation["code"] for violation in shown["contract_violations"]} == {"stats_mismatch"}


def test_s2_45_answers_name_the_version_of_the_contract(ask: Ask, chain: dict[str, Any]) -> None:
    queued = ask("POST", "/api/v1/plans/runs", chain).json()
    checked = ask("POST", "/api/v1/contract/payload", chain).json()
    assert queued["contract_version"] == checked["contract_version"] == CONTRACT_VERSION


def test_checking_a_payload_runs_nothing(ask: Ask, chain: dict[str, Any]) -> None:
    assert ask("POST", "/api/v1/contract/payload", chain).json()["valid"]
    strict = ask("POST", "/api/v1/contract/payload?strict=1", chain).json()
    assert [error["code"] for error in strict["errors"]] == ["tool_not_object"]
    assert not Run.objects.exists()


def test_checking_results_finds_what_breaks_the_contract(ask: Ask) -> None:
    verdict = ask("POST", "/api/v1/contract/results", {"results": []}).json()
    assert not verdict["valid"]
    assert verdict["errors"][0]["code"] == "meta_missing"


def test_a_secret_in_a_refused_plan_is_not_sent_back(ask: Ask) -> None:
    token = "ghp_" + "".join(random.Random(3).choices("abcdefghij0123456789", k=36))
    plan = {"steps": [{"step_id": "a", "dependencies": [token], "tool": "echo"}]}
    answer = ask("POST", "/api/v1/plans/runs", plan)
    assert answer.status_code == 422
    assert token not in answer.content.decode()


@pytest.mark.parametrize("runner", ["inline", "distributed"])
def test_a_run_names_its_runner_and_hands_out_its_results(
    ask: Ask, chain: dict[str, Any], runner: str
) -> None:
    path = f"/api/v1/plans/runs?runner={runner}&strict_degraded=true"
    queued = ask("POST", path, chain).json()
    results = f"{queued['url']}/results"
    assert ask("GET", results).status_code == 409
    deliver()
    run = ask("GET", queued["url"]).json()
    assert (run["runner"], run["strict_degraded"]) == (runner, True)
    assert (run["task_status"], run["release"]) == ("COMPLETED", VERSION)
    document = ask("GET", results).json()
    assert list(document) == ["contract_version", "results"]
    assert ask("POST", "/api/v1/contract/results", document).json()["valid"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("runner=somewhere", "runner"),
        ("strict_degraded=perhaps", "strict_degraded"),
        ("strict_degrade=true", "strict_degrade"),
        ("correlation_id=", "correlation_id"),
        ("correlation_id=%00", "correlation_id"),
    ],
)
def test_an_unknown_option_of_a_run_is_refused_with_its_field(
    ask: Ask, chain: dict[str, Any], query: str, field: str
) -> None:
    answer = ask("POST", f"/api/v1/plans/runs?{query}", chain)
    assert answer.status_code == 400
    assert field in answer.json()
    assert field in answer.json()["detail"]
    assert not Run.objects.exists()


def _step(step_id: object, *dependencies: str) -> dict[str, Any]:
    return {"step_id": step_id, "tool": "echo", "dependencies": list(dependencies)}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([_step(f"step_{k}") for k in range(1, 10_002)], {("/steps", "steps_too_many")}),
        (
            [_step("a", "c"), _step("b", "a"), _step("c", "b"), _step("d", "d")],
            {
                ("/steps/0/dependencies", "dependency_cycle"),
                ("/steps/3/dependencies/0", "dependency_self"),
            },
        ),
        (
            [_step("a"), _step("a"), _step("step_\u00b2"), _step("__meta__"), 5, None],
            {
                ("/steps/1/step_id", "step_id_duplicate"),
                ("/steps/2/step_id", "step_id_number"),
                ("/steps/3/step_id", "step_id_reserved"),
                ("/steps/4", "step_type"),
                ("/steps/5", "step_type"),
            },
        ),
    ],
    ids=["too many", "cyclic and self-dependent", "ids and non-objects"],
)
def test_s2_2_every_error_of_a_bad_plan_is_located_and_nothing_is_run(
    ask: Ask, steps: list[Any], expected: set[tuple[str, str]]
) -> None:
    answer = ask("POST", "/api/v1/plans/runs", {"steps": steps})
    assert answer.status_code == 422
    errors = answer.json()["errors"]
    assert {(error["path"], error["code"]) for error in errors} == expected
    assert all(error["line"] >= 1 and error["column"] >= 1 for error in errors)
    assert not Run.objects.exists()
    assert not OutboxMessage.objects.exists()


def test_of_very_many_errors_the_first_100_are_kept(ask: Ask) -> None:
    answer = ask("POST", "/api/v1/plans/runs", {"steps": [5] * 5_000})
    paths = [error["path"] for error in answer.json()["errors"]]
    assert paths == [f"/steps/{index}" for index in range(100)]
