"""POST /api/v1/lab/parse."""

from agents.goals.models import Attempt
from tests.agents.conftest import Api, Planner


def test_s1_11_an_answer_is_read_without_asking_a_model(planner: Planner, api: Api) -> None:
    answer = api.post("lab/parse", {"raw": "Sure: {'a': 1,}"})

    assert answer.status_code == 200
    assert answer.json()["value"] == {"a": 1}
    assert {item["kind"] for item in answer.json()["repairs"]}
    assert not Attempt.objects.exists()


def test_s1_12_a_refusal_says_where_and_why(planner: Planner, api: Api) -> None:
    raw = '{\n "a": 1,\n "a": 2}'

    error = api.post("lab/parse", {"raw": raw}).json()["error"]

    assert (error["type"], error["line"], error["column"]) == ("duplicate_key", 3, 2)


def test_a_schema_is_checked_and_a_cut_answer_is_told(planner: Planner, api: Api) -> None:
    body = {"raw": '{"steps": []}', "schema": "plan"}
    cut = {"raw": '{"steps": [', "finish_reason": "length"}

    assert api.post("lab/parse", body).json()["error"]["type"] == "schema_invalid"
    assert api.post("lab/parse", cut).json()["error"]["type"] == "truncated"


def test_bad_input_is_refused_with_the_field(planner: Planner, api: Api) -> None:
    for body, path in (
        ({}, "/raw"),
        ({"raw": 1}, "/raw"),
        ({"raw": "", "schema": "poem"}, "/schema"),
        ({"raw": "", "more": 1}, "/more"),
    ):
        answer = api.post("lab/parse", body)
        assert answer.status_code == 422
        assert [error["path"] for error in answer.json()["errors"]] == [path]
