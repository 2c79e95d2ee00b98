"""`manage.py redact`: one answer a line, whatever the line is."""

import html
import io
import json
import re
from base64 import b64encode, urlsafe_b64encode
from random import Random
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from django.core.management import call_command

from tests.failsoft.redaction.made_up import make

TOKEN = "ghp_" + make("{alnum:36}", Random(2))[0]
VALUE = make("{alnum:14}", Random(8))[0]


def run(monkeypatch: pytest.MonkeyPatch, *lines: bytes, **options: Any) -> list[Any]:
    stdin = io.TextIOWrapper(io.BytesIO(b"\n".join(lines)))
    monkeypatch.setattr("sys.stdin", stdin)
    stdout = io.StringIO()
    call_command("redact", stdout=stdout, **options)
    return [json.loads(line) for line in stdout.getvalue().splitlines()]


def test_texts_are_masked_and_the_kinds_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"id": 7, "text": f"it is {TOKEN}.", "limit": 12}
    whole = {"id": "b", "text": f"it is {TOKEN}."}
    answers = run(monkeypatch, json.dumps(asked).encode(), json.dumps(whole).encode())
    assert answers == [
        {"id": 7, "text": "it is ", "found": ["github_token"]},
        {"id": "b", "text": "it is [REDACTED:github_token].", "found": ["github_token"]},
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
        (b"[" * 100_000, "nested too deeply"),
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


# Quotes, backslash, other scripts, signs of URLs and of HTML, lines, spaces at the ends.
VALUES = (
    "{alnum:16}", "{alnum:8}\"{alnum:6}'{alnum:4}", "{alnum:6}\\{alnum:8}",
    "{alnum:7}ü€日{alnum:7}",
    "{alnum:6}%{alnum:4}&{alnum:6}<", "{alnum:10}\n{alnum:12}\r\n{alnum:9}",
    "  {alnum:14}\t",
    "{alnum:5} {alnum:5}/+={alnum:5}",
)  # fmt: skip


def encoded(value: str) -> list[str]:
    """Give a value in the encodings that it must not survive in."""
    raw = value.encode()
    once = json.dumps(value)[1:-1]
    lines = [line for line in value.split("\n") if len(line.strip()) >= 8]
    return [
        value, value.strip(), once, json.dumps(once)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, safe=""), quote_plus(value), quote(quote(value, safe=""), safe=""),
        html.escape(value), repr(value)[1:-1], repr(raw)[2:-1], raw.hex(), raw.hex().upper(),
        raw.hex(" "), value.replace("'", "''"), *lines,
        *(b64encode(b"x" * lead + raw).decode() for lead in range(3)),
        *(urlsafe_b64encode(b"x" * lead + raw).decode() for lead in range(3)),
        b64encode(b"anna:" + raw).decode(), b64encode(value.strip().encode()).decode(),
    ]  # fmt: skip


def is_left(form: str, text: str) -> bool:
    """Ask for six characters in a row, but for what base64 mixes with its neighbours."""
    inner = form.strip()[8:-6] if len(form) > 24 else form.strip()
    return any(inner[at : at + 6] in text for at in range(max(1, len(inner) - 5)))


def test_s0_45_known_values_survive_in_no_encoding_whole_or_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = Random(45)
    asked: list[tuple[str, dict[str, Any]]] = []
    for template in VALUES:
        value = make(template, random)[0]
        for form in encoded(value):
            for limit in (None, 12 + len(form.encode()) // 2, 12 + len(form.encode())):
                text = f"a call with {form} failed"
                asked.append((form, {"text": text, "known": [value], "limit": limit}))
    lines = [json.dumps({"id": n, **line}).encode() for n, (_, line) in enumerate(asked)]
    answers = run(monkeypatch, *lines)
    assert len(answers) == len(asked) >= 3 * 136
    for (form, line), answer in zip(asked, answers, strict=True):
        left = re.sub(r"\[REDACTED:[a-z_]+\]", " ", answer["text"])
        assert not is_left(form, left), (form, answer)
        assert line["limit"] is None or len(answer["text"].encode()) <= line["limit"]
