"""`manage.py redact`: one answer a line, whatever the line is."""

import io
import json
from random import Random
from typing import Any

import pytest
from django.core.management import call_command

from tests.diagnostics.core.redaction.made_up import make

TOKEN = "ghp_" + make("{alnum:36}", Random(2))[0]
VALUE = make("{alnum:14}", Random(8))[0]


def run(monkeypatch: pytest.MonkeyPatch, *lines: bytes, **options: Any) -> list[Any]:
    stdin = io.TextIOWrapper(io.BytesIO(b"\n".join(lines)))
    monkeypatch.setattr("sys.stdin", stdin)
    stdout = io.StringIO()
    call_command("redact", stdout=stdout, **options)
    return [json.loads(line) for line in stdout.getvalue().splitlines()]


def test_texts_are_masked_and_the_kinds_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = {"id": 7, "text": f"it is {TOKEN}.", "limit": 12}
    whole = {"id": "b", "text": f"it is {TOKEN}."}
    answers = run(monkeypatch, json.dumps(asked).encode(), json.dumps(whole).encode())
    assert answers == [
        {"id": 7, "text": "it is ", "found": ["github_token"]},
        {
            "id": "b",
            "text": "it is [REDACTED:github_token].",
            "found": ["github_token"],
        },
    ]


def test_values_of_the_line_are_masked_and_weak_ones_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = {"id": 1, "text": VALUE.encode().hex() + " abc", "known": [VALUE, "abc"]}
    (answer,) = run(monkeypatch, json.dumps(line).encode())
    assert (answer["text"], answer["found"]) == ("[REDACTED:known] abc", ["known"])
    assert "known[1]" in answer["refused"][0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"not json", "JSON object"),
        (b"\xff", "JSON object"),
        (b"[" * 100_000, "JSON object"),
        (b"[]", "JSON object"),
        (b'{"id": 3}', "text"),
        (b'{"id": 3, "text": "a", "limit": -1}', "limit"),
        (b'{"id": 3, "text": "a", "limit": true}', "limit"),
        (b'{"id": 3, "text": "a", "known": "b"}', "known"),
        (b'{"id": 3, "text": "a", "known": [4]}', "known"),
    ],
    ids=map(str, range(9)),
)
def test_a_bad_line_is_told_and_the_next_one_answered(
    monkeypatch: pytest.MonkeyPatch, line: bytes, message: str
) -> None:
    first, second = run(monkeypatch, line, b"", b'{"id": 4, "text": "fine"}')
    assert message in first["error"]["message"]
    assert first["error"]["line"] == 1
    assert second == {"id": 4, "text": "fine", "found": []}


def test_half_characters_go_through(monkeypatch: pytest.MonkeyPatch) -> None:
    (answer,) = run(monkeypatch, b'{"id": 1, "text": "a \\ud800 b"}')
    assert answer["text"] == "a \ufffd b"


def test_mail_addresses_are_masked_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"id": 1, "text": "to anna@example.org"}).encode()
    assert run(monkeypatch, line)[0]["found"] == []
    assert run(monkeypatch, line, emails=True)[0]["found"] == ["email"]
