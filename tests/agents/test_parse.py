"""`manage.py parse`: JSON Lines in, JSON Lines out, no database, no line stops the run."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.management.commands.parse import parse_lines
from failsoft.parsing.tracing import same
from failsoft.retry.answers import AnswerSchema
from tests.failsoft.parsing.corpus import read_cases

ROOT = Path(__file__).resolve().parents[2]


def run_lines(*lines: object, schema: AnswerSchema = AnswerSchema.NONE) -> list[dict[str, Any]]:
    """Answer lines given as JSON values or as raw bytes."""
    encoded = [
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
    ]
    return list(parse_lines(io.BytesIO(b"".join(encoded)), schema))


def test_each_line_is_answered_in_order_with_every_key() -> None:
    first, second = run_lines({"id": 1, "raw": '{"a": 1,}'}, {"id": "x", "raw": "no"})
    assert first == {
        "id": 1,
        "ok": True,
        "value": {"a": 1},
        "repairs": [{"kind": "trailing_comma", "line": 1, "column": 8, "lossless": True}],
        "coerced": [],
        "error": None,
    }
    assert (second["id"], second["ok"], second["value"]) == ("x", False, None)
    assert {key: second["error"][key] for key in ("type", "line", "column")} == {
        "type": "not_json",
        "line": 1,
        "column": 1,
    }


def test_a_line_names_its_own_schema_and_finish_reason() -> None:
    raw = '{"decision": "PASS"}'
    plan, decision, cut = run_lines(
        {"id": 1, "raw": raw},
        {"id": 2, "raw": raw, "schema": "decision", "finish_reason": None},
        {"id": 3, "raw": '{"decision": "PA', "schema": "decision", "finish_reason": "length"},
        schema=AnswerSchema.PLAN,
    )
    assert plan["error"]["type"] == "schema_invalid"
    assert decision["value"] == {"decision": "complete"}
    assert cut["error"]["type"] == "truncated"


def test_a_line_with_a_schema_or_tools_of_its_own_is_judged_as_a_posted_answer() -> None:
    schema = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
    tools = [{"name": "weather", "parameters": schema}]
    call = {"name": "weather", "arguments": '{"city": 1}'}
    good, wrong, cut, strange, free = run_lines(
        {"id": 1, "raw": '{"city": "Oslo",}', "answer_schema": schema},
        {"id": 2, "tools": tools, "tool_calls": [call]},
        {"id": 3, "raw": '{"city": "Os', "answer_schema": schema, "finish_reason": "length"},
        {"id": 4, "tools": tools, "tool_calls": [{"name": "sun", "arguments": "{}"}]},
        {"id": 5, "raw": "Mild today.", "tools": tools},
    )
    assert (good["ok"], good["repairs"][0]["kind"]) == (True, "trailing_comma")
    assert (wrong["ok"], wrong["errors"][0]["path"]) == (False, "/city")
    assert (cut["id"], cut["type"]) == (3, "truncated")
    assert strange["errors"][0]["code"] == "tool_unknown"
    assert (free["ok"], free["unchecked"]) == (None, "no_schema")


def test_a_line_that_is_no_answer_is_refused_with_its_place() -> None:
    calls = [{"name": "weather", "arguments": {"city": "\ud800"}}]
    for line in run_lines({"tool_calls": calls}, {"tools": "weather", "raw": "x"}):
        assert line["error"]["type"] == "bad_input"
    assert "/tools" in line["error"]["message"]


@pytest.mark.parametrize(
    ("line", "given_id"),
    [
        (b"not json\n", None),
        (b"[1]\n", None),
        (b"\xff\xfe\n", None),
        (b"[" * 5000 + b"\n", None),
        (b'{"id": 5}\n', 5),
        (b'{"id": "a", "raw": 7}\n', "a"),
        (b'{"id": "a", "raw": "{}", "schema": "poem"}\n', "a"),
        (b'{"id": "a", "raw": "{}", "finish_reason": 1}\n', "a"),
    ],
)
def test_a_bad_line_is_told_with_its_number_and_the_run_goes_on(
    line: bytes, given_id: object
) -> None:
    good = {"id": "next", "raw": "{}"}
    first, bad, last = run_lines(good, line, good)
    assert first["ok"] is True
    assert last["ok"] is True
    assert (bad["id"], bad["ok"], bad["value"]) == (given_id, False, None)
    assert (bad["error"]["type"], bad["error"]["line"]) == ("bad_input", 2)


def test_blank_lines_are_passed_over_but_counted() -> None:
    (bad,) = run_lines(b"\n", b"  \n", b"x\n")
    assert bad["error"]["line"] == 3


def test_the_corpus_gets_the_same_verdicts() -> None:
    cases = read_cases()
    answers = run_lines(
        *(
            {"id": case.name, "raw": case.text, "finish_reason": case.finish_reason}
            for case in cases
        )
    )
    for case, answer in zip(cases, answers, strict=True):
        assert answer["id"] == case.name
        assert answer["ok"] is case.is_recoverable
        assert same(answer["value"], case.value)
        if not case.is_recoverable:
            error = answer["error"]
            assert (error["type"], error["line"], error["column"]) == (
                case.error_type,
                case.line,
                case.column,
            )


@pytest.mark.slow
def test_s1_11_the_command_needs_neither_provider_nor_database() -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "BROKER_URL")
    }
    lines = [{"id": n, "raw": f'{{"n": {n},}}', "schema": None} for n in range(2000)]
    lines.append({"id": "half", "raw": '{"a": "\ud83d"}', "schema": None})
    done = subprocess.run(
        [sys.executable, "manage.py", "parse", "--schema", "none"],
        input="\n".join(json.dumps(line) for line in lines).encode(),
        capture_output=True,
        cwd=ROOT,
        env=environment,
        timeout=120,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [*range(2000), "half"]
    assert all(answer["value"] == {"n": answer["id"]} for answer in answers[:-1])
    assert answers[-1]["error"]["type"] == "not_json"
