"""Tool messages, ready for a conversation of several turns."""

from failsoft.actions import ParseResult, decode_tool_calls
from failsoft.actions.entries import ENTRIES
from failsoft.actions.results import ExecutionFailure, tool_messages
from tests.failsoft.actions.calls import complete, create, update, written


def _decode(*calls: object) -> ParseResult:
    return decode_tool_calls(list(calls), ENTRIES)


def _told(result: ParseResult, *failed: int) -> dict[str, str]:
    failures = [
        ExecutionFailure(result.actions[index], "not_found", "entry abc123 not found")
        for index in failed
    ]
    messages = tool_messages(result, failures)
    assert {message["role"] for message in messages} == {"tool"}
    return {message["tool_call_id"]: message["content"] for message in messages}


def test_s4_27_a_call_that_was_not_parsed_is_told_with_its_place() -> None:
    result = _decode(update({"status": "frozen"}, "a"), complete(identity="b"))
    assert _told(result) == {
        "a": "update_entries failed: updates[0].fields.status: "
        "expected one of active, snoozed, completed, archived",
        "b": "complete_entries accepted.",
    }


def test_s4_28_a_call_that_was_applied_in_part_is_told_with_the_reason() -> None:
    two = {"entries": [{"id": "abc123"}, {"id": "def"}]}
    result = _decode(written("complete_entries", two, "a"))
    assert _told(result, 0) == {"a": "complete_entries partially failed: entry abc123 not found"}


def test_s4_28_a_call_of_which_nothing_was_applied_failed() -> None:
    result = _decode(complete("abc123", "a"))
    assert _told(result, 0) == {"a": "complete_entries failed: entry abc123 not found"}


def test_there_is_one_message_for_every_call_that_has_an_id() -> None:
    result = _decode(
        create({"content": "a"}, {"content": "b"}, identity="a"), None, complete("x", "b")
    )
    assert list(_told(result)) == ["a", "b"]
