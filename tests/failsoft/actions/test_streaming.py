"""Tool calls that arrive in pieces."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from failsoft.actions import decode_tool_calls
from failsoft.actions.entries import ENTRIES
from failsoft.actions.streaming import assemble_anthropic, assemble_openai
from tests.failsoft.actions.calls import complete, create

CALLS = [create({"content": "milk — und Brot"}, identity="a"), complete("abc", "b")]


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _openai_deltas(calls: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = []
    for index, item in enumerate(calls):
        name, arguments = item["function"]["name"], item["function"]["arguments"]
        begin = {"index": index, "id": item["id"], "function": {"name": name}}
        deltas.append({**begin, "type": "function"})
        deltas += [
            {"index": index, "function": {"arguments": piece}} for piece in _pieces(arguments, size)
        ]
    return deltas


@given(st.integers(1, 50))
def test_pieces_of_any_size_give_the_calls_that_were_sent(size: int) -> None:
    assert assemble_openai(_openai_deltas(CALLS, size)) == CALLS


def test_interleaved_calls_are_kept_apart_by_their_index() -> None:
    deltas = _openai_deltas(CALLS, 7)
    first = [delta for delta in deltas if delta["index"] == 0]
    second = [delta for delta in deltas if delta["index"] == 1]
    woven = [delta for pair in zip(first, second, strict=False) for delta in pair]
    woven += first[len(second) :] + second[len(first) :]
    assert assemble_openai(woven) == CALLS


def test_without_an_index_a_new_id_begins_a_new_call() -> None:
    deltas = [
        {key: value for key, value in delta.items() if key != "index"}
        for delta in _openai_deltas(CALLS, 9)
    ]
    assert assemble_openai(deltas) == CALLS


def test_pieces_that_say_nothing_change_nothing() -> None:
    deltas = _openai_deltas(CALLS, 10)
    noise: list[object] = [{"index": 0}, {"index": 1, "id": ""}, None, "x"]
    assert assemble_openai([*deltas, *noise]) == CALLS


def test_a_stream_that_breaks_off_is_a_failure_that_is_counted() -> None:
    deltas = _openai_deltas(CALLS, 10)[:-1]
    result = decode_tool_calls(assemble_openai(deltas), ENTRIES)
    assert (len(result.actions), len(result.failures), result.calls) == (1, 1, 2)


def test_the_events_of_the_other_wire_format_give_the_same_actions() -> None:
    events: list[dict[str, Any]] = []
    for index, item in enumerate(CALLS):
        name, arguments = item["function"]["name"], item["function"]["arguments"]
        block = {"type": "tool_use", "id": item["id"], "name": name, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in _pieces(arguments, 8)
        ]
    assert assemble_anthropic(events) == CALLS


def test_a_block_that_came_whole_keeps_its_input() -> None:
    arguments = json.loads(CALLS[0]["function"]["arguments"])
    block = {"type": "tool_use", "id": "a", "name": "create_entries", "input": arguments}
    (call,) = assemble_anthropic([{"index": 0, "content_block": block}])
    assert decode_tool_calls([call], ENTRIES).actions


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["index", "id", "function", "name", "arguments", "delta", "content_block"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(_JSON, max_size=6))
def test_whatever_arrives_nothing_raises(pieces: list[object]) -> None:
    for calls in (assemble_openai(pieces), assemble_anthropic(pieces)):
        assert decode_tool_calls(calls, ENTRIES).calls == len(calls)
