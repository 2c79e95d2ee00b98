"""The `failsoft` command: what it prints, writes and ends with."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from failsoft.command import main
from failsoft.plans.contract import CONTRACT_VERSION

GOOD = {"steps": [{"step_id": "step_1", "tool": "echo", "args": {"text": "hi"}}]}
BAD = '{"steps": [\n  {"step_id": "a", "tool": "echo", "dependencies": ["b"]}\n]}'
TOP = Path(__file__).parents[2]


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.json"
    path.write_text(json.dumps(GOOD), encoding="utf-8")
    return str(path)


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "bad, 100%.json"
    path.write_text(BAD, encoding="utf-8")
    return str(path)


def test_valid_plans_pass(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", good]) == 0
    assert capsys.readouterr().out == f"{good}: PASS\n"


def test_every_violation_of_every_file_has_its_place(
    good: str, bad: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", bad, good, "/no/such/file"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{bad}: line 2, column 53: /steps/0/dependencies/0 ")
    assert lines[1:3] == [f"{bad}: FAIL", f"{good}: PASS"]
    assert "No such file" in lines[3]
    assert "[unreadable]" in lines[3]


def test_results_are_checked_as_results(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--results", str(TOP / "examples" / "results.json")]) == 0
    assert main(["verify", "--results", good]) == 1


def test_strict_knows_the_tools_that_are_named(
    good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--strict", "--tool", "search", good]) == 1
    assert "[tool_unknown]" in capsys.readouterr().out
    assert main(["verify", "--tool", "search", good]) == 0


def test_json_is_one_document(good: str, bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--json", good, bad]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["contract_version"] == CONTRACT_VERSION
    assert [(row["file"], row["valid"]) for row in document["files"]] == [
        (good, True),
        (bad, False),
    ]
    assert document["files"][1]["errors"][0]["line"] == 2


def test_annotations_escape_what_ends_them(
    good: str, bad: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--github", good, bad]) == 1
    [line] = capsys.readouterr().out.splitlines()
    name = bad.replace(",", "%2C").replace("100%", "100%25")
    assert line.startswith(f"::error file={name},line=2,col=53,title=")
    assert "::/steps/0/dependencies/0 " in line


def test_a_report_has_a_case_for_each_file(
    good: str, bad: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.xml"
    assert main(["verify", "--junit", str(report), good, bad]) == 1
    suite = ElementTree.parse(report).getroot()  # noqa: S314 - written above
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    [passed, failed] = suite.findall("testcase")
    assert (passed.get("name"), list(passed)) == (good, [])
    [failure] = failed
    assert "line 2, column 53" in (failure.text or "")


def test_a_report_that_cannot_be_written_is_one_line(
    good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = str(tmp_path / "none" / "report.xml")
    assert main(["verify", "--junit", report, good]) == 2
    assert capsys.readouterr().err == f"--junit {report}: No such file or directory\n"


def test_a_report_is_xml_whatever_the_document_and_its_name_contain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pl\udcffn.json"
    step = {"step_id": "a", "tool": "echo", "dependencies": ["\x01\ufffe"]}
    path.write_text(json.dumps({"steps": [step]}), encoding="utf-8")
    report = tmp_path / "report.xml"
    assert main(["verify", "--junit", str(report), str(path)]) == 1
    [failed] = ElementTree.parse(report).getroot()  # noqa: S314 - written above
    assert (failed.get("name") or "").endswith("pl\\udcffn.json")
    [failure] = failed
    assert (failure.get("message") or "").startswith("1 violation of contract")


@pytest.mark.slow
def test_what_the_output_cannot_encode_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    step = {"step_id": "a", "tool": "echo", "dependencies": ["日本"]}
    path.write_text(json.dumps({"steps": [step]}), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "failsoft.command", "verify", str(path)],
        cwd=TOP,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert r'depends on "\u65e5\u672c"' in done.stdout


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_named(
    encoding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"steps": [\n{"title": "café"}]}', encoding=encoding)
    assert main(["verify", str(path)]) == 1
    place = {"utf-16": "line 1, column 1", "latin-1": "line 2, column 15"}[encoding]
    assert f"{path}: {place}: this is not JSON: it is not UTF-8 [not_json]\n" in (
        capsys.readouterr().out
    )


def test_a_secret_in_a_document_is_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "sk-ant-" + "api03-" + "Ab9" * 30
    path = tmp_path / "plan.json"
    step = {"step_id": "a", "tool": "echo", "dependencies": [secret]}
    path.write_text(json.dumps({"steps": [step]}), encoding="utf-8")
    assert main(["verify", str(path)]) == 1
    assert secret not in capsys.readouterr().out


def test_answers_are_read_line_by_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = '{"id": 1, "raw": "{\'a\': 1}"}\n{"id": 2}\n{"raw": "{}", "answer_schema": {}}\n'
    lines += '{"raw": "{}", "shema": "plan"}\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert main(["parse"]) == 1
    first, second, third, fourth = map(json.loads, capsys.readouterr().out.splitlines())
    assert (fourth["ok"], fourth["ignored"]) == (True, ["shema"])
    assert (first["id"], first["ok"], first["value"]) == (1, True, {"a": 1})
    assert (second["id"], second["ok"]) == (2, False)
    assert '"raw"' in second["error"]["message"]
    assert third["error"]["message"].startswith("answer_schema: only `manage.py parse`")


def test_only_valid_answers_end_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    for raw, code in (("{}", 0), ("no", 1)):
        line = json.dumps({"raw": raw}).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
        assert main(["parse"]) == code


@pytest.mark.slow
@pytest.mark.parametrize(("end", "code"), [("close", 141), ("interrupt", 130)])
def test_a_reader_that_leaves_and_an_interrupt_end_it_without_a_traceback(
    end: str, code: int
) -> None:
    # What runs in the background of a shell ignores interrupts, and so do its children.
    interruptible = ["env", "--default-signal=INT"]
    command = [*interruptible, sys.executable, "-m", "failsoft.command", "parse"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=TOP, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b'{"raw": "{}"}\n')
        process.stdin.flush()
        assert process.stdout.readline().startswith(b'{"id": null, "ok": true')
        process.stdout.close()
        if end == "interrupt":
            process.send_signal(signal.SIGINT)
        else:
            process.stdin.write(b'{"raw": "{}"}\n')
            process.stdin.flush()
        assert process.stderr.read() == b""
    assert process.returncode == code


@pytest.mark.slow
def test_the_command_needs_no_server() -> None:
    code = (
        "import sys\n"
        "for name in ('django', 'celery', 'psycopg'): sys.modules[name] = None\n"
        "from failsoft.command import main; sys.exit(main(['verify', 'examples/plan.json']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "examples/plan.json: PASS\n")


def test_a_wrong_command_line_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["verify"])
    assert end.value.code == 2
