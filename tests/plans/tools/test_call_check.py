"""The check of a planner's calls: names, arguments, references."""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from plans.tools import registry
from plans.tools.definition import Tool
from plans.tools.registry import SchemaArguments, call_check, tool

pytestmark = pytest.mark.django_db

REMOTE = {
    "type": "object",
    "properties": {
        "mode": {"enum": ["dry", "wet"]},
        "rows": {"type": "array", "items": {"type": "integer"}},
        "limit": {"type": "integer"},
    },
    "required": ["limit"],
    "additionalProperties": False,
}


class Address(BaseModel):
    street: str
    number: int


class ParcelArgs(BaseModel):
    weight_kg: float = Field(gt=0)
    speed: Literal["slow", "fast"] = "slow"
    to: Address | None = None
    labels: list[str] = []
    codes: list[int] = []


class NoteArgs(BaseModel):
    model_config = ConfigDict(extra="ignore")

    text: str = ""


class BrokenArgs(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def break_down(cls, text: str) -> str:
        return text[1_000_000]


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tools", dict(registry._tools))
    for name, args in (("parcel", ParcelArgs), ("note", NoteArgs), ("broken", BrokenArgs)):
        tool(name, args, description="For these tests.")(lambda args: args)
    for name, schema in (("remote", REMOTE), ("adrift", {"$ref": "#/$defs/nothing"})):
        registry._tools[name] = Tool(name, "", SchemaArguments(schema, name), lambda *_: None)


def faults_of(name: str, **args: Any) -> list[tuple[str, str]]:
    return [(fault.path, fault.code) for fault in call_check()(name, args)]


def message_of(name: str, **args: Any) -> str:
    (fault,) = call_check()(name, args)
    return fault.message


@pytest.mark.parametrize(
    ("args", "faults"),
    [
        ({"weight_kg": 2}, []),
        ({"weight_kg": "2.5", "speed": "fast", "labels": ["a"]}, []),
        ({}, [("/weight_kg", "argument_missing")]),
        ({"weight": 2}, [("/weight", "argument_unknown"), ("/weight_kg", "argument_missing")]),
        ({"weight_kg": "two"}, [("/weight_kg", "argument_invalid")]),
        ({"weight_kg": 0}, [("/weight_kg", "argument_invalid")]),
        ({"weight_kg": 1, "speed": "soon"}, [("/speed", "argument_invalid")]),
        ({"weight_kg": 1, "to": {"street": "s"}}, [("/to/number", "argument_missing")]),
        ({"weight_kg": 1, "codes": [1, "x"]}, [("/codes/1", "argument_invalid")]),
    ],
)
def test_arguments_are_checked_with_the_schema_of_their_tool(
    args: dict[str, Any], faults: list[tuple[str, str]]
) -> None:
    assert faults_of("parcel", **args) == faults


def test_what_a_tool_would_ignore_is_a_fault_unless_it_says_so() -> None:
    assert faults_of("sleep", secs=7) == [("/secs", "argument_unknown")]
    assert 'only the keys seconds, got "secs"' in message_of("sleep", secs=7)
    assert faults_of("note", mood=7) == []
    assert faults_of("echo", anything={"at": "all"}) == []


@pytest.mark.parametrize(
    "value", ["$step_1.output", "$step_1.output.rows.0", "env:PARCEL_KEY", "file:/run/secrets/key"]
)
def test_a_reference_counts_as_of_any_type(value: str) -> None:
    for args in (
        {"weight_kg": value},
        {"weight_kg": 1, "speed": value},
        {"weight_kg": 1, "to": value, "labels": value},
        {"weight_kg": 1, "to": {"street": "s", "number": value}},
        {"weight_kg": 1, "codes": [1, value]},
    ):
        assert faults_of("parcel", **args) == []


def test_a_reference_hides_no_other_fault() -> None:
    to = {"street": "$step_1.output.street"}
    assert faults_of("parcel", weight_kg="$step_1.output", to=to) == [
        ("/to/number", "argument_missing")
    ]
    assert faults_of("parcel", weight_kg="$$step_1.output") == [("/weight_kg", "argument_invalid")]
    assert faults_of("parcel", weight_kg="$5") == [("/weight_kg", "argument_invalid")]


def test_messages_say_what_is_expected_without_the_value() -> None:
    assert message_of("parcel") == "expected this key, which is required"
    assert message_of("parcel", weight_kg="zq") == (
        "expected a valid number, unable to parse string as a number"
    )
    assert message_of("parcel", weight_kg=1, speed="zq") == "expected 'slow' or 'fast'"


def test_a_value_that_differs_in_letter_case_only_is_told_so() -> None:
    assert message_of("parcel", weight_kg=1, speed="FAST").endswith(
        '; only the letter case differs from "fast"'
    )


def test_an_unknown_tool_is_named_with_the_nearest() -> None:
    assert faults_of("parsel", weight_kg=1) == [("", "tool_unknown")]
    assert message_of("parsel") == 'expected a known tool, got "parsel"; the nearest is "parcel"'


def test_only_the_tools_that_may_be_called_are_known() -> None:
    check = call_check(["note", "sleep"])

    assert check("note", {}) == []
    (fault,) = check("parcel", {"weight_kg": 1})
    assert (fault.code, fault.message) == (
        "tool_unknown", 'expected a known tool, got "parcel"',
    )  # fmt: skip
    assert check("nots", {})[0].message.endswith('the nearest is "note"')


@pytest.mark.parametrize("name", ["broken", "adrift"])
def test_a_check_that_cannot_be_made_is_left_to_the_step(name: str) -> None:
    assert faults_of(name, text="x") == []


def test_the_schema_of_a_server_is_checked_likewise() -> None:
    args = {"mode": "Dry", "rows": ["1"], "more": 1}
    assert faults_of("remote", **args) == [
        ("/mode", "argument_invalid"),
        ("/rows/0", "argument_invalid"),
        ("/limit", "argument_missing"),
        ("/more", "argument_unknown"),
    ]
    (fault, *_) = call_check()("remote", args)
    assert fault.message.endswith('; only the letter case differs from "dry"')
    held = {"mode": "$a.output", "rows": ["$a.output.n"], "limit": "env:LIMIT"}
    assert faults_of("remote", **held) == []


def test_each_tool_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    find: Callable[[str], Tool | None] = registry.find_tool

    def count(name: str) -> Tool | None:
        asked.append(name)
        return find(name)

    monkeypatch.setattr("plans.tools.registry.find_tool", count)
    check = call_check()
    for _ in range(3):
        check("note", {})
    assert asked == ["note"]
