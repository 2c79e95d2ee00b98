"""Whether an answer of tool calls counts, and if not, why."""

from typing import Any

import pytest

from failsoft.actions.entries import ENTRIES
from failsoft.actions.verdicts import JudgedCalls, judge_calls
from failsoft.events import MAX_ERRORS
from failsoft.retry.answers import Misunderstood, Understood
from tests.failsoft.actions.calls import call, create, update

GOOD = create({"content": "milk"})
BAD = update({"status": "frozen"})
CUT = call("create_entries", '{"entries": [{"content": "mi')


def _judge(*calls: object, text: str = "", finish: str | None = "stop") -> JudgedCalls:
    return judge_calls(calls, text, finish, ENTRIES)


@pytest.mark.parametrize("finish", ["stop", "length", "tool_calls", None], ids=repr)
def test_one_usable_action_is_enough(finish: str | None) -> None:
    judged = _judge(GOOD, CUT, BAD, finish=finish)
    assert isinstance(judged.verdict, Understood)
    assert len(judged.result.failures) == 2


@pytest.mark.parametrize(
    ("calls", "text", "finish", "error_type"),
    [
        ((BAD,), "", "stop", "schema_invalid"),
        ((BAD, CUT), "", "stop", "schema_invalid"),
        ((CUT, CUT), "", "stop", "truncated"),
        ((BAD,), "", "length", "truncated"),
        ((), "", "length", "truncated"),
        ((), "", "stop", "empty_output"),
        ((), " \n", "stop", "empty_output"),
        ((), "Here you go.", "stop", "not_json"),
        ((), "I'm sorry, but I can't do that.", "stop", "refusal"),
        ((), "", "content_filter", "refusal"),
        ((BAD,), "", "refusal", "refusal"),
    ],
    ids=repr,
)
def test_an_answer_without_any_is_refused_by_its_kind(
    calls: tuple[Any, ...], text: str, finish: str, error_type: str
) -> None:
    verdict = _judge(*calls, text=text, finish=finish).verdict
    assert isinstance(verdict, Misunderstood)
    assert verdict.error_type == error_type
    assert verdict.errors


def test_what_was_written_holds_text_and_calls() -> None:
    written = _judge(GOOD, text="Of course.").written
    assert written.startswith("Of course.\n[")
    assert "create_entries" in written
    assert _judge(text="Only text.").written == "Only text."


def test_calls_too_deep_to_write_are_told_by_their_kind() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"entries": deep}
    assert _judge(deep, "x").written == "[an object, text]"
    # Let go of it level by level: the interpreter would do it by recursion.
    while deep:
        deep = deep["entries"]


def test_leniencies_and_errors_stay_within_the_bounds_of_an_event() -> None:
    entries = [{"content": "a", "x": 1} for _ in range(MAX_ERRORS + 1)]
    lenient = _judge(create(*entries)).verdict
    refused = _judge(*[BAD] * (MAX_ERRORS + 1)).verdict
    assert len(lenient.coerced) == MAX_ERRORS
    assert isinstance(refused, Misunderstood)
    assert len(refused.errors) == MAX_ERRORS
