"""Native tool calls through the official SDKs, against loopback servers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from failsoft.actions import decode_tool_calls
from failsoft.actions.entries import ENTRIES
from failsoft.retry.policy import OutputMode
from tests.agents.llm.test_providers import (
    Wire,
    anthropic_at,
    anthropic_says,
    ask,
    openai_at,
    openai_says,
    text_block,
)
from tests.failsoft.actions.calls import call, complete, create
from tests.scripted import ScriptedProvider

CALLS = [create({"content": "milk"}, identity="a"), complete("abc", "b")]
OFFERS = ENTRIES.offers()


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A server for one test."""
    serving = Wire()
    yield serving
    serving.server.shutdown()
    serving.server.server_close()


def _blocks(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "type": "tool_use",
            "id": item["id"],
            "name": item["function"]["name"],
            "input": json.loads(item["function"]["arguments"]),
        }
        for item in calls
    ]


def test_openai_is_offered_the_toolset_and_its_calls_come_back_as_they_are(wire: Wire) -> None:
    wire.body = openai_says(None, "tool_calls", tool_calls=CALLS)
    answer = openai_at(wire).complete(ask(OutputMode.TOOLS, tools=OFFERS))
    assert list(answer.tool_calls) == CALLS
    (asked,) = wire.asked
    assert asked["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in asked["tools"]] == [
        tool.name for tool in ENTRIES.tools
    ]
    assert asked["tools"][0]["function"]["parameters"] == OFFERS[0].parameters


@pytest.mark.slow
def test_anthropic_is_offered_the_toolset_and_its_uses_become_calls(wire: Wire) -> None:
    wire.body = anthropic_says(text_block("Of course."), *_blocks(CALLS), stop_reason="tool_use")
    answer = anthropic_at(wire).complete(ask(OutputMode.TOOLS, tools=OFFERS))
    assert answer.text == "Of course."
    result = decode_tool_calls(answer.tool_calls, ENTRIES)
    assert [action.tool_call_id for action in result.actions] == ["a", "b"]
    (asked,) = wire.asked
    assert asked["tool_choice"] == {"type": "any"}
    assert asked["tools"][0]["input_schema"] == OFFERS[0].parameters


def test_both_wire_formats_decode_to_the_same_actions(wire: Wire) -> None:
    wire.body = openai_says(None, "tool_calls", tool_calls=CALLS)
    first = openai_at(wire).complete(ask(OutputMode.TOOLS, tools=OFFERS))
    wire.body = anthropic_says(*_blocks(CALLS), stop_reason="tool_use")
    second = anthropic_at(wire).complete(ask(OutputMode.TOOLS, tools=OFFERS))
    actions = [decode_tool_calls(answer.tool_calls, ENTRIES).actions for answer in (first, second)]
    assert actions[0] == actions[1]


@pytest.mark.parametrize(
    "broken", [None, "create_entries", {}, {"id": "x", "function": None}, 7], ids=repr
)
def test_s4_43_a_broken_call_on_the_wire_does_not_stop_the_batch(
    wire: Wire, broken: object
) -> None:
    wire.body = openai_says(None, "tool_calls", tool_calls=[broken, *CALLS])
    answer = openai_at(wire).complete(ask(OutputMode.TOOLS, tools=OFFERS))
    result = decode_tool_calls(answer.tool_calls, ENTRIES)
    assert (len(result.actions), len(result.failures)) == (2, 1)


@pytest.mark.parametrize("broken", [{}, {"id": 5, "name": None}, {"name": "x"}], ids=repr)
def test_s4_43_a_broken_use_on_the_other_wire_does_not_stop_the_batch(
    wire: Wire, broken: dict[str, Any]
) -> None:
    blocks = [{"type": "tool_use", **broken}, *_blocks(CALLS)]
    wire.body = anthropic_says(*blocks, stop_reason="tool_use")
    answer = anthropic_at(wire).complete(ask(OutputMode.TOOLS, tools=OFFERS))
    result = decode_tool_calls(answer.tool_calls, ENTRIES)
    assert (len(result.actions), len(result.failures)) == (2, 1)


@pytest.mark.parametrize("calls", ["text", {"a": 1}, 5], ids=repr)
def test_calls_that_are_no_list_are_one_failure(wire: Wire, calls: object) -> None:
    wire.body = openai_says(None, "tool_calls", tool_calls=calls)
    answer = openai_at(wire).complete(ask(OutputMode.TOOLS, tools=OFFERS))
    result = decode_tool_calls(answer.tool_calls, ENTRIES)
    assert (len(result.actions), len(result.failures)) == (0, 1)


def test_calls_come_back_though_they_were_not_asked_for(wire: Wire) -> None:
    wire.body = openai_says(None, "tool_calls", tool_calls=CALLS)
    answer = openai_at(wire).complete(ask(OutputMode.SCHEMA))
    assert list(answer.tool_calls) == CALLS


def test_a_forced_call_is_the_answer_and_no_call(wire: Wire) -> None:
    wire.body = openai_says(None, "tool_calls", tool_calls=CALLS[:1])
    answer = openai_at(wire).complete(ask(OutputMode.TOOLS))
    assert answer.text == CALLS[0]["function"]["arguments"]
    assert answer.tool_calls == ()


def test_an_answer_without_calls_has_its_text(wire: Wire) -> None:
    wire.body = openai_says("I would rather chat.")
    answer = openai_at(wire).complete(ask(OutputMode.TOOLS, tools=OFFERS))
    assert (answer.text, answer.tool_calls) == ("I would rather chat.", ())


def test_a_script_gives_calls_too() -> None:
    provider = ScriptedProvider([{"tool_calls": [call("x", "{}"), 5]}])
    answer = provider.complete(ask(OutputMode.TOOLS, tools=OFFERS))
    assert answer.tool_calls == (call("x", "{}"), 5)
