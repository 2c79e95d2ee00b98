"""`run_plan` and `verify_contract`: exit codes, clean output, no database."""

import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from failsoft.plans.contract import CONTRACT_VERSION
from failsoft.plans.results import validate_results
from tests.checking import commands
from tests.ci import steps_beside

_OK = {"steps": [{"step_id": "step_1", "tool": "echo", "args": {"text": "hi"}}]}
_FAILING = {"steps": [{"step_id": "step_1", "tool": "fail"}]}
_INVALID = {"steps": [{"step_id": "a", "tool": "echo", "dependencies": ["b"]}]}


def _call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        call_command(*args)
    out, err = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, out, err


def _file(folder: Path, value: object) -> str:
    path = folder / "document.json"
    text = value if isinstance(value, str) else json.dumps(value)
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("plan", "code"), [(_OK, 0), (_FAILING, 1), (_INVALID, 2)])
def test_s2_39_run_plan_needs_no_database_and_its_exit_code_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plan: Any, code: int
) -> None:
    assert _call(capsys, "run_plan", _file(tmp_path, plan))[0] == code
    assert _call(capsys, "run_plan", _file(tmp_path, plan), "--json")[0] == code


def test_a_missing_file_is_no_invalid_plan(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = _call(capsys, "run_plan", "no-such.json")
    assert err == "Nothing was run.\nno-such.json: No such file or directory [unreadable]\n"


def test_run_plan_json_is_a_document_that_verify_contract_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = _call(capsys, "run_plan", _file(tmp_path, _FAILING), "--json")
    document = json.loads(out)
    assert list(document) == ["contract_version", "results"]
    checked = _call(capsys, "verify_contract", "--results", _file(tmp_path, out))
    assert checked[:2] == (0, "PASS\n")


def test_run_plan_shows_a_readable_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, err = _call(capsys, "run_plan", _file(tmp_path, _OK))
    assert out.splitlines() == [
        'step_1    ok       echo  {"text": "hi"}',
        "COMPLETED: 1 total steps, 1 ok, 0 skipped, 0 failed",
    ]
    assert err == ""


def test_a_long_output_is_cut_in_the_table_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = {"step_id": "step_1", "tool": "echo", "args": {"text": "x" * 5_000}}
    path = _file(tmp_path, {"steps": [step]})
    _, out, _ = _call(capsys, "run_plan", path)
    assert max(map(len, out.splitlines())) < 250
    _, out, _ = _call(capsys, "run_plan", path, "--json")
    assert "x" * 5_000 in out


def test_s2_1_a_refused_plan_runs_nothing_and_is_located(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = _call(capsys, "run_plan", _file(tmp_path, _INVALID))
    assert (code, out) == (2, "")
    assert "line 1, column 62: /steps/0/dependencies/0" in err
    _, out, _ = _call(capsys, "run_plan", _file(tmp_path, _INVALID), "--json")
    assert json.loads(out)["errors"][0]["code"] == "dependency_unknown"


def test_force_executes_an_invalid_plan_without_dropping_a_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = {"steps": [5, *_INVALID["steps"], *_OK["steps"]]}
    path = _file(tmp_path, plan)
    code, out, _ = _call(capsys, "run_plan", path, "--force", "--json")
    results = json.loads(out)["results"]
    assert (code, len(results)) == (1, 4)
    assert results[-1]["task_status"] == "BLOCKED"
    assert validate_results(results) == []


def test_a_plan_is_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = io.BytesIO(b"\xef\xbb\xbf" + json.dumps(_OK).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    assert _call(capsys, "run_plan", "-", "--json")[0] == 0


@pytest.mark.parametrize("text", ["", "{", '{"a": 1, "a": 2}', "[" * 5000, "NaN"])
def test_text_that_is_not_json_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = _file(tmp_path, text)
    assert _call(capsys, "run_plan", path)[0] == 2
    code, out, _ = _call(capsys, "verify_contract", "--payload", path, "--json")
    (error,) = json.loads(out)["errors"]
    assert (code, error["line"]) == (1, 1)
    assert error["column"] >= 1


def test_a_file_that_does_not_exist_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = _call(capsys, "run_plan", "/no/such/file")
    assert code == 2
    assert "No such file" in err


def test_s2_40_verify_contract_prints_pass_and_exits_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = _call(capsys, "verify_contract", "--payload", _file(tmp_path, _OK))
    assert checked == (0, "PASS\n", "")


def test_s2_40_verify_contract_prints_every_violation_and_exits_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _file(tmp_path, '{"steps": [\n {"step_id": "", "tool": 5}]}')
    code, out, _ = _call(capsys, "verify_contract", "--payload", path)
    assert code == 1
    assert out.splitlines() == [
        "line 2, column 14: /steps/0/step_id expected a non-empty string,"
        " got an empty one [step_id_empty]",
        "line 2, column 26: /steps/0/tool expected a tool name or an object,"
        " got a number [tool_type]",
        "FAIL",
    ]


def test_s2_49_verify_contract_json_lists_located_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = _call(capsys, "verify_contract", "--results", _file(tmp_path, "[]"), "--json")
    document = json.loads(out)
    assert (document["valid"], document["contract_version"]) == (False, CONTRACT_VERSION)
    assert list(document["errors"][0]) == ["path", "code", "message", "line", "column"]


def test_strict_knows_every_registered_tool_also_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, code in (("fail", 0), ("nothing_like_it", 1)):
        plan = {"steps": [{"step_id": "step_1", "tool": {"name": name}}]}
        path = _file(tmp_path, plan)
        checked = _call(capsys, "verify_contract", "--payload", path, "--strict")
        assert checked[0] == code


def test_a_secret_never_reaches_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_" + "".join(random.Random(5).choices("abcdefghij0123456789", k=36))
    plan = {
        "steps": [
            {"step_id": "a", "tool": "echo", "args": {"x": token}},
            {"step_id": "b", "tool": "fail", "args": {"message": f"with {token}"}},
            {"step_id": token, "tool": token},
        ]
    }
    path = _file(tmp_path, plan)
    for options in ([], ["--json"]):
        _, out, err = _call(capsys, "run_plan", path, *options)
        assert token not in out + err
        assert "[REDACTED:" in out


@pytest.mark.slow
def test_s2_42_every_merge_is_checked_for_payloads_and_results() -> None:
    checks = [command for _, command in commands() if "verify_contract" in command]
    assert [command[-2] for command in checks] == ["--payload", "--results"]
    assert ["make", "check"] in [step.command for step in steps_beside(turn=0)]
    assert "tests.ci" in Path(".ci/run").read_text(encoding="utf-8")
