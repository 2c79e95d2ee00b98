"""Each call stands or falls alone, and nothing disappears."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.actions import ParseResult, decode_tool_calls
from failsoft.actions.entries import ENTRIES
from tests.failsoft.actions.calls import call, complete, create, update, written

GOOD = {"content": "milk", "category": "list"}
BAD = {"content": 5, "category": "list"}


def _decode(*calls: object) -> ParseResult:
    return decode_tool_calls(list(calls), ENTRIES)


def test_s4_1_and_s4_30_one_malformed_call_of_five_does_not_lose_the_others() -> None:
    result = _decode(
        create(GOOD),
        complete("abc"),
        call("create_entries", '{"entries": [{"content": '),
        update({"priority": 2}),
        complete("def"),
    )
    assert [action.type for action in result.actions] == [
        "create",
        "complete",
        "update",
        "complete",
    ]
    assert len(result.failures) == 1


def test_s4_38_one_good_and_one_bad_call_the_good_one_survives() -> None:
    result = _decode(create(BAD, identity="bad"), create(GOOD, identity="good"))
    assert [action.tool_call_id for action in result.actions] == ["good"]
    assert [failure.tool_call_id for failure in result.failures] == ["bad"]


def test_s4_3_and_s4_4_a_failure_names_tool_call_arguments_place_and_reason() -> None:
    (failure,) = _decode(create(GOOD, BAD, identity="call_7")).failures
    assert failure.tool_name == "create_entries"
    assert failure.tool_call_id == "call_7"
    assert json.loads(failure.raw_arguments) == {"entries": [GOOD, BAD]}
    assert failure.path == "entries[1].content"
    assert failure.pointer == "/0/function/arguments/entries/1/content"
    assert failure.message == "expected text, got a number"


def test_s4_4_the_place_inside_an_update_is_told() -> None:
    (failure,) = _decode(update({"status": "frozen"})).failures
    assert failure.path == "updates[0].fields.status"


def test_s4_5_one_bad_entry_of_three_fails_its_whole_call() -> None:
    result = _decode(create(GOOD, BAD, GOOD))
    assert result.actions == ()
    assert [failure.entries for failure in result.failures] == [3]


def test_s4_6_and_s4_36_entries_inside_one_call_are_not_isolated() -> None:
    result = _decode(create(GOOD, BAD), create(GOOD, identity="call_2"))
    assert len(result.actions) == 1


def test_s4_7_the_result_holds_actions_and_failures() -> None:
    result = _decode(create(GOOD))
    assert [action.flat()["content"] for action in result.actions] == ["milk"]
    assert result.failures == ()


@pytest.mark.parametrize("arguments", ["", " ", "null", None, "[]", "3", '"x"', [1], 5])
def test_arguments_that_are_no_object_fail_their_call(arguments: object) -> None:
    result = _decode(call("create_entries", arguments), create(GOOD))
    assert len(result.actions) == 1
    assert [failure.entries for failure in result.failures] == [1]


def test_arguments_as_an_object_are_read_like_text() -> None:
    as_object = _decode(call("create_entries", {"entries": [GOOD]}))
    as_text = _decode(create(GOOD))
    assert as_object == as_text


def test_arguments_in_damaged_json_are_repaired_on_record() -> None:
    result = _decode(call("create_entries", "{'entries': [{'content': 'milk'}]}"))
    assert len(result.actions) == 1
    assert {repair.kind for repair in result.repairs} == {"single_quotes"}


@pytest.mark.parametrize(
    "broken",
    [
        None,
        "create_entries",
        7,
        [],
        {},
        {"id": "x"},
        {"id": "x", "function": None},
        {"id": "x", "function": "create_entries"},
        {"id": "x", "function": {"arguments": "{}"}},
        {"id": "x", "function": {"name": "", "arguments": "{}"}},
        {"id": "x", "function": {"name": None, "arguments": "{}"}},
        {"id": "x", "function": {"name": "create_entries"}},
        # The tool's name outside of `function` is no envelope.
        {"id": "x", "name": "create_entries", "arguments": '{"entries": []}'},
    ],
)
def test_s4_43_a_broken_envelope_is_a_failure_and_stops_nothing(broken: object) -> None:
    result = _decode(broken, create(GOOD))
    assert len(result.actions) == 1
    assert [failure.code for failure in result.failures] == ["bad_envelope"]


def test_s4_44_an_unknown_tool_is_a_failure_and_stops_nothing() -> None:
    result = _decode(written("create_entrys", {"entries": [GOOD, GOOD]}), complete("abc"))
    assert len(result.actions) == 1
    (failure,) = result.failures
    assert failure.code == "unknown_tool"
    assert failure.entries == 2
    assert "create_entries" in failure.message
    assert result.unknown_tools == ["create_entrys"]


@pytest.mark.parametrize("calls", ["text", 5, {"function": {}}, True, b"[]"])
def test_calls_that_are_no_list_are_one_failure(calls: object) -> None:
    result = decode_tool_calls(calls, ENTRIES)
    assert (result.calls, result.failed_entries) == (1, 1)


def test_an_answer_without_calls_has_no_result_and_no_failure() -> None:
    assert decode_tool_calls(None, ENTRIES) == ParseResult()
    assert decode_tool_calls([], ENTRIES) == ParseResult()


def test_a_call_without_entries_is_told_and_counts_none() -> None:
    (failure,) = _decode(create()).failures
    assert (failure.path, failure.entries) == ("entries", 0)


def test_s4_37_a_good_batch_is_taken_as_it_stands_with_nothing_recorded() -> None:
    entry = {
        "content": "Water the plants",
        "category": "habit",
        "summary": "Plants",
        "source_text": "water the plants every week",
        "priority": 3,
        "due_date": "friday",
        "cadence": "weekly",
    }
    result = _decode(create(entry))
    assert [action.flat() for action in result.actions] == [{"type": "create", **entry}]
    assert (result.coerced, result.repairs, result.failures) == ((), (), ())


def test_a_result_survives_being_stored() -> None:
    result = _decode(
        create({"content": "a", "category": "grocery"}),
        call("create_entries", "{'entries': [{'content': 'b'}]}"),
        create(BAD),
        None,
    )
    stored = json.loads(json.dumps(result.to_json()))
    assert ParseResult.from_json(stored) == result


_SCALAR = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(["todo", "grocery", "daily", "frozen", "active", "3", "99"])
)
_KEYS = st.sampled_from(
    ["content", "category", "priority", "cadence", "status", "id", "fields", "reason"]
) | st.text(max_size=5)
_ENTRY = st.recursive(
    _SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=10,
)
_LIKELY_ENTRY = st.fixed_dictionaries(
    {"content": st.text(max_size=5) | _SCALAR, "id": st.text(max_size=5) | _SCALAR},
    optional={"fields": _ENTRY, "category": _SCALAR, "priority": _SCALAR},
)
_ARGUMENTS = st.dictionaries(
    st.sampled_from(["entries", "updates", "x"]),
    st.lists(_LIKELY_ENTRY | _ENTRY, max_size=4) | _ENTRY,
    max_size=3,
)
_NAMES = st.sampled_from([tool.name for tool in ENTRIES.tools]) | st.text(max_size=5)
_CALLS = st.lists(
    st.builds(
        call,
        _NAMES | _SCALAR,
        _ARGUMENTS | _ARGUMENTS.map(json.dumps) | st.text(max_size=20) | _ENTRY,
        st.integers(),
    )
    | _ENTRY,
    max_size=6,
)


@given(_CALLS | _ENTRY)
def test_s4_2_decoding_never_raises_for_what_a_model_made(calls: object) -> None:
    result = decode_tool_calls(calls, ENTRIES)
    assert ParseResult.from_json(result.to_json()).calls == result.calls


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"entries": [{"content": "a", "priority": ' + "9" * 5_000 + "}]}",
        '{"entries": "\x00"}',
        '{"entries": "\ud800"}',
        '{"entries": [{"content": "\\ud800"}]}',
    ],
)
def test_s4_2_known_killers_do_not_raise(text: str) -> None:
    result = _decode(call("create_entries", text), create(GOOD))
    assert result.calls == 2
    assert result.actions


def test_s4_2_an_object_too_deep_to_write_is_a_failure() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"entries": deep}
    result = _decode(call("create_entries", deep), create(GOOD))
    assert len(result.failures) == 1
    # Let go of it level by level: the interpreter would do it by recursion.
    while deep:
        deep = deep["entries"]


@given(_CALLS)
def test_s4_45_every_call_and_every_entry_is_counted_once(calls: list[Any]) -> None:
    result = decode_tool_calls(calls, ENTRIES)
    applied = {action.call for action in result.actions}
    failed = [failure.call for failure in result.failures]
    assert sorted([*applied, *failed]) == list(range(len(calls)))
    assert result.calls == len(calls)
    entries = {
        index: sum(action.call == index for action in result.actions) for index in applied
    } | {failure.call: failure.entries for failure in result.failures}
    assert [entries[index] for index in range(len(calls))] == [
        _entries_sent(item) for item in calls
    ]
    assert len(result.actions) + result.failed_entries == sum(entries.values())


def _entries_sent(item: Any) -> int:
    """Count entries in a way of its own: by the standard library."""
    function = item.get("function") if isinstance(item, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, parse_constant=_refuse)
        except ValueError:
            return 1
    if not isinstance(arguments, dict):
        return 1
    lists = [arguments.get(key) for key in ("entries", "updates")]
    return next((len(held) for held in lists if isinstance(held, list)), 1)


def _refuse(constant: str) -> None:
    raise ValueError(constant)
