"""Calls that a model wrote as text."""

import json

import jsonschema_rs
import pytest

from failsoft.actions.decoding import written_calls
from failsoft.actions.entries import ENTRIES
from failsoft.actions.verdicts import judge_calls
from failsoft.retry.answer_schemas import narrow_schema
from failsoft.retry.answers import Misunderstood, PlannerSchema
from tests.failsoft.actions.calls import create

BARE = {"name": "create_entries", "arguments": {"entries": [{"content": "milk"}]}}
SCHEMA = narrow_schema(PlannerSchema.ACTIONS, ENTRIES.offers())


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"tool_calls": [BARE]}),
        json.dumps([BARE]),
        json.dumps(BARE),
        json.dumps({"tool_calls": [create({"content": "milk"})]}),
        f"Here you are:\n```json\n{json.dumps({'tool_calls': [BARE]})}\n```",
    ],
)
def test_calls_in_the_text_are_decoded(text: str) -> None:
    judged = judge_calls((), text, "stop", ENTRIES)
    assert [action.fields["content"] for action in judged.result.actions] == ["milk"]


def test_native_calls_come_before_what_the_text_says() -> None:
    native = create({"content": "native"})
    judged = judge_calls((native,), json.dumps([BARE]), "stop", ENTRIES)
    assert [action.fields["content"] for action in judged.result.actions] == ["native"]


@pytest.mark.parametrize(
    "value", [{}, {"a": 1}, [], [1], {"tool_calls": 5}, {"name": "x"}], ids=repr
)
def test_a_document_without_calls_holds_none(value: object) -> None:
    assert written_calls(value) is None  # type: ignore[arg-type] # any JSON
    verdict = judge_calls((), json.dumps(value), "stop", ENTRIES).verdict
    assert isinstance(verdict, Misunderstood)
    assert verdict.error_type == "schema_invalid"


def test_s4_43_a_broken_written_call_does_not_stop_the_batch() -> None:
    broken = [5, {"id": "x"}, {"name": "create_entries"}, {"name": 5, "arguments": {}}]
    text = json.dumps({"tool_calls": [*broken, BARE]})
    result = judge_calls((), text, "stop", ENTRIES).result
    assert (len(result.actions), len(result.failures)) == (1, 4)


def test_each_written_call_has_an_id_of_its_own() -> None:
    text = json.dumps([BARE, {**BARE, "id": "mine"}])
    actions = judge_calls((), text, "stop", ENTRIES).result.actions
    assert [action.tool_call_id for action in actions] == ["call_1", "mine"]


def test_what_the_schema_allows_can_be_decoded() -> None:
    entry = {"content": "milk", "category": "todo", "priority": 1}
    update = {"id": "abcdef01", "fields": {"status": "snoozed"}}
    answer = {
        "tool_calls": [
            {"name": "create_entries", "arguments": {"entries": [entry]}},
            {"name": "update_entries", "arguments": {"updates": [update]}},
        ]
    }
    jsonschema_rs.validate(SCHEMA, answer)
    judged = judge_calls((), json.dumps(answer), "stop", ENTRIES)
    assert len(judged.result.actions) == 2
    assert judged.result.failures == ()


@pytest.mark.parametrize(
    "call",
    [
        {"name": "create_entries", "arguments": {"entries": []}},
        {"name": "nothing", "arguments": {}},
        {"name": "complete_entries", "arguments": {"entries": [{"id": "x" * 80}]}},
        {"name": "update_entries", "arguments": {"updates": [{"id": "abcd"}]}},
    ],
    ids=repr,
)
def test_the_schema_refuses_what_decoding_would(call: object) -> None:
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(SCHEMA, {"tool_calls": [call]})
