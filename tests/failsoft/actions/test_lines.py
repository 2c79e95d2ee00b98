"""`parse_actions`: JSON Lines in and out."""

import io
import json
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from agents.management.commands.parse_actions import NOTHING, decode
from failsoft.actions.entries import ENTRIES
from failsoft.json_lines import MAX_LINE_BYTES, Line, answer_line
from tests.failsoft.actions.calls import call, complete, create, update


def _run(
    lines: bytes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines)))
    call_command("parse_actions", "--toolset", "entries")
    out, err = capsys.readouterr()
    assert err == ""
    return [json.loads(line) for line in out.splitlines()]


def _answer(line: bytes, number: int) -> Line:
    return answer_line(line, number, partial(decode, ENTRIES), NOTHING)


def _line(identity: object, *calls: object) -> bytes:
    return json.dumps({"id": identity, "tool_calls": list(calls)}).encode() + b"\n"


def test_a_line_gives_flat_actions_failures_and_leniencies(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = _line(
        "one",
        create({"content": "milk", "category": "grocery"}, identity="a"),
        update({"status": "frozen"}, "b"),
    )
    (answer,) = _run(line, capsys, monkeypatch)
    assert answer["id"] == "one"
    (action,) = answer["actions"]
    assert action["type"] == "create"
    assert action["content"] == "milk"
    assert action["category"] == "note"
    (failure,) = answer["failures"]
    assert failure["tool_name"] == "update_entries"
    assert failure["tool_call_id"] == "b"
    assert failure["path"] == "updates[0].fields.status"
    assert failure["message"]
    (leniency,) = answer["coerced"]
    assert (leniency["path"], leniency["kind"]) == ("entries[0].category", "fallback")


@pytest.mark.parametrize(
    ("bad", "column"),
    [
        (b"garbage {", 1),
        (b'{"id": 1, "tool_calls": [}', 26),
        (b"[]", 1),
        (b"3", 1),
        (b'{"id": 7}', 1),
        (b'{"id": "\xff"}', 9),
        (b"[" * 200_000, 1),
    ],
)
def test_a_bad_line_gives_an_error_with_its_place_and_the_run_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, bad: bytes, column: int
) -> None:
    lines = _line(1, complete()) + b"\n" + bad + b"\n" + _line(2, complete())
    first, error, last = _run(lines, capsys, monkeypatch)
    assert error["error"]["line"] == 3
    assert error["error"]["column"] == column
    assert error["error"]["message"]
    assert error["actions"] == []
    for good in (first, last):
        assert "error" not in good
        assert len(good["actions"]) == 1


def test_half_a_character_in_the_input_stops_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = _line("\ud800", call("\ud800", "{}"), create({"content": "\ud800"}))
    (answer,) = _run(lines, capsys, monkeypatch)
    assert answer["id"] == "�"
    assert answer["failures"][0]["tool_name"] == "�"


def test_a_line_beyond_its_bound_is_answered() -> None:
    answer = _answer(b" " * (MAX_LINE_BYTES + 1), 4)
    assert (answer["error"]["code"], answer["error"]["line"]) == ("too_large", 4)


def test_an_unknown_toolset_is_refused() -> None:
    with pytest.raises(CommandError, match="entries"):
        call_command("parse_actions", "--toolset", "nothing")


@given(st.binary(max_size=60))
def test_s4_2_no_line_raises(line: bytes) -> None:
    assert "error" in _answer(line, 1)
