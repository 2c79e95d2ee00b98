"""The parse lab: one answer under settings."""

import json

import pytest

from agents.lab.parse_lab import ParseTarget, Settings, read_answer
from diagnostics.ingest.schemas import read_schema
from failsoft.actions.entries import TOOLSETS
from failsoft.retry.judging import PLAN

ANYTHING = ParseTarget("anything")
A_PLAN = ParseTarget("a plan", judge=PLAN)
STRICT = Settings(recovers=False)
EXACT = Settings(is_lenient=False)
STEP = {"step_id": "step_1", "dependencies": [], "tool": "echo"}


def test_damaged_json_is_read_with_its_repairs_placed() -> None:
    reading = read_answer("Sure: {'a': 1,}", ANYTHING, Settings())
    assert reading.ok
    assert reading.value == {"a": 1}
    assert all(repair.line == 1 for repair in reading.repairs)


def test_strict_json_refuses_at_the_first_repair() -> None:
    reading = read_answer('{"a": 1,\n "b": 2,}', ANYTHING, STRICT)
    (error,) = reading.errors
    assert (reading.error_type, error.line, error.column) == ("not_json", 2, 8)
    assert read_answer('{"a": 1}', ANYTHING, STRICT).ok


def test_a_refusal_has_its_place_whatever_the_settings() -> None:
    for settings in (Settings(), STRICT):
        reading = read_answer('{"a": ', ANYTHING, settings)
        assert (reading.error_type, reading.value) == ("truncated", None)
        assert reading.errors[0].column == 7


def test_leniency_is_switched_off_alone() -> None:
    text = json.dumps({"steps": [{**STEP, "dependencies": "step_0x"}], "x": 1})
    soft, exact = (read_answer(text, A_PLAN, one) for one in (Settings(), EXACT))
    assert {item.kind for item in soft.coerced} >= {"scalar_for_list"}
    assert exact.coerced == ()
    assert any(item.path == "/steps/0/dependencies" for item in exact.errors)
    good = json.dumps({"steps": [STEP]})
    assert read_answer(good, A_PLAN, EXACT).ok


def test_an_agents_schema_is_checked_as_it_is() -> None:
    target = ParseTarget("own", schema=read_schema({"type": "object", "required": ["b"]}))
    reading = read_answer('{"a": 1}', target, Settings())
    assert (reading.error_type, reading.errors[0].code) == ("schema_invalid", "missing")
    assert read_answer('{"b": 1}', target, Settings()).ok


@pytest.mark.parametrize("is_held", [False, True], ids=["a list", "an object"])
def test_tool_calls_that_were_written_down_are_decoded(is_held: bool) -> None:
    bad = {"function": {"name": "no_such", "arguments": "{}"}}
    calls = {"tool_calls": [bad]} if is_held else [bad]
    target = ParseTarget("calls", toolset=TOOLSETS["entries"])
    reading = read_answer(json.dumps(calls), target, Settings())
    assert reading.error_type == "schema_invalid"
    assert reading.errors[0].line == 1


def test_calls_that_stand_tell_what_was_taken_leniently() -> None:
    entry = {"type": "task", "content": "Buy milk", "category": "nonsense"}
    arguments = json.dumps({"entries": [entry]})
    call = {"function": {"name": "create_entries", "arguments": arguments}}
    target = ParseTarget("calls", toolset=TOOLSETS["entries"])
    reading = read_answer(json.dumps([call]), target, Settings())
    assert reading.ok, reading.errors
    assert all(item.line == 1 for item in reading.coerced)
    assert reading.coerced


def test_a_check_that_takes_too_long_is_refused() -> None:
    schema = {"items": {"items": {"type": "integer"}}}
    target = ParseTarget("own", schema=read_schema(schema))
    text = json.dumps([[1] * 100] * 1_600)
    reading = read_answer(text, target, Settings())
    assert reading.errors[0].code == "too_large"


def test_settings_say_what_they_are() -> None:
    assert Settings().words == "recovering parser, lenient types"
    assert Settings(recovers=False, is_lenient=False).words == "strict JSON, exact types"
