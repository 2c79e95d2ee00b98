"""`manage.py decide`: JSON Lines in and out, whatever the lines are."""

import json
import subprocess
import sys
from io import BytesIO
from typing import Any

import pytest

from failsoft.json_lines import answer_lines
from plans.management.commands.decide import NOTHING, decide
from tests.failsoft.completion.cases import CASES, CHECK_ID


def decided(*lines: object) -> list[dict[str, Any]]:
    text = b"\n".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines
    )
    return list(answer_lines(BytesIO(text), decide, NOTHING))


def test_s3_7_the_command_decides_the_whole_case_list() -> None:
    lines = [
        {"id": n, "file": case.file, "output": case.output, "check_id": CHECK_ID}
        for n, case in enumerate(CASES)
    ]
    for case, answer in zip(CASES, decided(*lines), strict=True):
        assert list(answer) == ["id", "decision", "source", "check_id_match", "reason"]
        cause = (answer["reason"] or "").partition(":")[0] or None
        decision = answer["decision"], answer["source"], answer["check_id_match"], cause
        assert decision == (case.decision, case.source, case.check_id_match, case.cause)


@pytest.mark.parametrize(
    ("line", "given_id"),
    [
        (b"nonsense", None),
        (b"[]", None),
        (b"{" * 50_000, None),
        (b'{"id": NaN, "output": "COMPLETE"}', None),
        (b'{"id": [1e999], "output": "COMPLETE"}', None),
        (b'{"id": 3, "output": "FAIL", "output": "PASS"}', None),
        (b'{"id": 3, "output": "PASS", "pad": "' + b" " * (16 << 20) + b'"}', None),
        ({"id": 3}, 3),
        ({"id": 3, "file": 4, "output": ""}, 3),
        ({"id": 3, "output": ["COMPLETE"]}, 3),
        ({"id": 3, "output": "", "check_id": 7}, 3),
    ],
)
def test_a_bad_line_is_told_with_its_number_and_the_next_is_read(
    line: object, given_id: object
) -> None:
    good = {"id": 9, "file": "FAIL", "output": "", "check_id": "c1"}
    first, second, third = decided(good, line, good)

    assert first == third
    assert (second["id"], second["error"]["line"]) == (given_id, 2)
    assert second["error"]["type"] == "bad_input"
    # Whoever reads only the decision goes round once more.
    assert (second["decision"], second["source"]) == ("undecidable", "none")
    assert (second["check_id_match"], second["reason"]) == (None, "bad_input")


def test_the_next_line_after_a_huge_one_is_read_whole() -> None:
    lines = BytesIO(b"x" * (40 << 20) + b'\n{"id": 2, "output": "PASS"}\r\n')

    first, second = answer_lines(lines, decide, NOTHING)

    assert (first["error"]["code"], first["error"]["line"]) == ("too_large", 1)
    assert (second["id"], second["decision"]) == (2, "complete")


def test_blank_lines_are_no_lines() -> None:
    assert len(decided(b"", b"  ", {"id": 1, "output": "FAIL"}, b"")) == 1


def test_half_a_character_does_no_harm() -> None:
    (answer,) = decided(b'{"id": "\\ud800", "file": "\\ud800", "check_id": "\\udfff"}')

    assert answer["decision"] == "undecidable"


@pytest.mark.slow
def test_standard_output_holds_nothing_else() -> None:
    lines = b'{"id": 1, "output": "COMPLETE", "check_id": "c1"}\nnonsense\n'
    done = subprocess.run(
        [sys.executable, "manage.py", "decide"],
        input=lines,
        capture_output=True,
        check=True,
        timeout=60,
    )

    first, second = [json.loads(line) for line in done.stdout.splitlines()]
    assert (first["decision"], second["error"]["line"]) == ("complete", 2)
