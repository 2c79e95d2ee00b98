"""Checkers of every kind: what they are told, what they may do, what becomes of them."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from diagnostics.accounts.models import Project
from failsoft.completion.specification import CheckSpec
from failsoft.completion.verdicts import CheckDecision, DecisionSource, UndecidedCause
from plans.checks.checking import CheckedWork, CheckerFailedError, CheckerOutput, run_check
from plans.checks.rows import Loop, check_once
from plans.checks.workspaces import NO_PROJECT
from plans.management.commands.decide import decide
from plans.models.check import CompletionCheck
from plans.models.run import Run
from plans.tools import registry
from tests.failsoft.completion.cases import CASES, CHECK_ID, GROUPS, Case

SUBJECT = CheckedWork(workspace="one", goal="Mend it", iteration=2, task_status="COMPLETED")
TOOLS = registry._tools


@pytest.fixture(autouse=True)
def space(settings: Any, tmp_path: Path) -> Path:
    settings.FAILSOFT_WORKSPACE_DIR = tmp_path / "spaces"
    settings.FAILSOFT_CHECK_COMMANDS = {}
    return tmp_path / "spaces" / NO_PROJECT / "one"


@pytest.fixture
def allow(settings: Any, tmp_path: Path) -> Any:
    """Allow a Python program as the command `review`."""

    def allow(program: str, *arguments: str) -> CheckSpec:
        file = tmp_path / "review.py"
        file.write_text(program, encoding="utf-8")
        argv = [sys.executable, "-I", str(file), *arguments]
        settings.FAILSOFT_CHECK_COMMANDS = {"review": argv}
        return CheckSpec(kind="command", command="review", decision_file="loop/v")

    return allow


class CaseArgs(BaseModel):
    """The case to play."""

    number: int
    decision_file: str | None = None


@pytest.fixture
def replay() -> Iterator[None]:
    """A tool that leaves behind what a golden case says."""

    def leave(args: CaseArgs) -> str:
        case = CASES[args.number]
        if case.file is not None and args.decision_file is not None:
            Path(args.decision_file).write_bytes(case.file.encode())
        return case.output

    registry.tool("replay", CaseArgs, description="Replay.", offered=False)(leave)
    yield
    del TOOLS["replay"]


def spec_of(number: int) -> CheckSpec:
    return CheckSpec(kind="tool", tool="replay", args={"number": number}, decision_file="v")


def told(case: Case) -> tuple[object, ...]:
    return case.decision, case.source, case.check_id_match, case.cause


@pytest.mark.slow
def test_s3_7_s3_33_s3_34_s3_47_every_door_decides_the_whole_case_list_alike(
    project: Project, replay: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, over rows as a worker does it, and by the command."""
    monkeypatch.setattr("plans.checks.rows.uuid7", lambda *_args: CHECK_ID)
    for number, case in enumerate(CASES):
        line = {"file": case.file, "output": case.output, "check_id": CHECK_ID}
        answer = decide(line)
        verdict = run_check(spec_of(number), SUBJECT, CHECK_ID).verdict
        row = check_once(make_loop(project, number), spec_of(number), SUBJECT, cycle=1, run_id=None)
        CompletionCheck.objects.filter(pk=row.pk).update(check_id=f"done-{number}")
        cause = (row.reason or "").partition(":")[0] or None

        assert (row.decision, row.source, row.check_id_match, cause) == told(case)
        assert (verdict.decision, verdict.source) == (row.decision, row.source)
        for name in ("decision", "source", "check_id_match"):
            assert answer[name] == getattr(row, name), case.name


def make_loop(project: Project, number: int) -> Loop:
    return Loop(
        of=Run(pk=UUID(int=number), project_id=project.pk),
        correlation_id="c",
        fence=lambda: None,
        on_settled=lambda row: None,
    )


def test_s3_10_s3_31_a_command_is_given_its_id_by_value(allow: Any, space: Path) -> None:
    spec = allow(
        "import json, os, sys\n"
        "told = json.load(sys.stdin)\n"
        "names = ['ROBOPPI_COMPLETION_CHECK_ID', 'FAILSOFT_COMPLETION_CHECK_ID']\n"
        "ids = {os.environ[name] for name in names} | {told['check_id'], sys.argv[1]}\n"
        "assert len(ids) == 1 and told['iteration'] == 2\n"
        "assert os.environ['FAILSOFT_DECISION_FILE'] == sys.argv[2]\n"
        "document = {'decision': 'PASS', 'check_id': ids.pop()}\n"
        "open(sys.argv[2], 'w').write(json.dumps(document))\n",
        "${check_id}",
        "${decision_file}",
    )
    verdict = run_check(spec, SUBJECT, "c1").verdict

    assert (verdict.decision, verdict.source) == (CheckDecision.COMPLETE, DecisionSource.FILE_JSON)
    assert (space / "loop/v").exists()


def test_a_command_has_a_small_environment_and_its_workspace(
    allow: Any, space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILSOFT_SECRET_KEY", "not for checkers")
    spec = allow("import json, os\nprint(json.dumps([os.getcwd(), sorted(os.environ)]))")
    folder, names = json.loads(run_check(spec, SUBJECT, "c1").output)

    assert folder == str(space)
    assert set(names) - {"LC_CTYPE"} == {
        "FAILSOFT_COMPLETION_CHECK_ID",
        "FAILSOFT_DECISION_FILE",
        "FAILSOFT_ITERATION",
        "HOME",
        "LANG",
        "PATH",
        "ROBOPPI_COMPLETION_CHECK_ID",
    }


def test_what_an_earlier_check_left_never_decides(allow: Any, space: Path) -> None:
    spec = allow("print('nothing to say')")
    (space / "loop").mkdir(parents=True)
    (space / "loop/v").write_text("PASS", encoding="utf-8")
    verdict = run_check(spec, SUBJECT, "c1").verdict

    assert (verdict.decision, verdict.cause) == (
        CheckDecision.UNDECIDABLE,
        UndecidedCause.MISSING_DECISION,
    )


def test_a_decision_file_that_is_a_link_ends_the_search(allow: Any) -> None:
    spec = allow(
        "import os\nos.symlink('/etc/hostname', os.environ['FAILSOFT_DECISION_FILE'])\n"
        "print('COMPLETE')"
    )
    verdict = run_check(spec, SUBJECT, "c1").verdict

    assert (verdict.decision, verdict.cause) == (
        CheckDecision.UNDECIDABLE,
        UndecidedCause.UNREADABLE_FILE,
    )


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "signal 11"),
        ("raise SystemExit(3)", "exit code 3"),
        # A crash behind a yes is no yes.
        ("print('COMPLETE', flush=True)\nraise SystemExit(1)", "exit code 1"),
        ("raise RuntimeError('no disk')", "no disk"),
    ],
)
def test_x_9_a_checker_that_crashes_has_failed(allow: Any, program: str, why: str) -> None:
    with pytest.raises(CheckerFailedError, match=why):
        run_check(allow(program), SUBJECT, "c1")


def test_an_exit_code_with_a_decision_against_the_work_is_that_decision(allow: Any) -> None:
    spec = allow("print('FAIL: two tests are red')\nraise SystemExit(1)")

    assert run_check(spec, SUBJECT, "c1").verdict.decision is CheckDecision.INCOMPLETE


def test_a_command_that_takes_too_long_is_killed_with_all_it_started(
    allow: Any, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    spec = allow(
        "import os, sys, time\n"
        "child = os.fork()\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "time.sleep(60)"
    ).model_copy(update={"timeout_seconds": 1})

    with pytest.raises(CheckerFailedError, match="no answer within 1 s"):
        run_check(spec, SUBJECT, "c1")
    for pid in pids.read_text(encoding="utf-8").split():
        wait_until_gone(int(pid))


def wait_until_gone(pid: int) -> None:
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.05)
    os.kill(pid, 9)
    pytest.fail(f"process {pid} lives on")


def test_an_endless_output_is_cut_and_never_says_complete(allow: Any) -> None:
    spec = allow("print('COMPLETE')\nprint('x' * 2_000_000)")
    checked = run_check(spec, SUBJECT, "c1")

    assert checked.verdict.cause is UndecidedCause.OUTPUT_CUT
    assert len(checked.output) <= 1024 * 1024


def test_a_command_that_is_not_allowed_is_not_run() -> None:
    spec = CheckSpec(kind="command", command="rm")

    with pytest.raises(CheckerFailedError, match="command rm is not allowed"):
        run_check(spec, SUBJECT, "c1")


def test_a_tool_that_is_not_there_has_failed() -> None:
    with pytest.raises(CheckerFailedError, match="the tool nobody is not registered"):
        run_check(CheckSpec(kind="tool", tool="nobody"), SUBJECT, "c1")


def test_places_in_the_arguments_of_a_tool_are_filled() -> None:
    args = {"decision": "complete", "check_id": "${check_id}"}
    spec = CheckSpec(kind="tool", tool="echo", args=args)
    verdict = run_check(spec, SUBJECT, "c1").verdict

    assert (verdict.decision, verdict.check_id_match) == (CheckDecision.COMPLETE, True)


def test_a_tool_that_returns_a_text_says_that_text() -> None:
    args = {"template": "COMPLETE"}
    spec = CheckSpec(kind="tool", tool="template", args=args)

    assert run_check(spec, SUBJECT, "c1").verdict.source is DecisionSource.MARKER


def test_a_model_is_asked_through_a_seam() -> None:
    spec = CheckSpec(kind="model")

    def answer(spec: CheckSpec, subject: CheckedWork, check_id: str) -> CheckerOutput:
        return CheckerOutput(json.dumps({"decision": "fail", "check_id": check_id}))

    verdict = run_check(spec, SUBJECT, "c1", answer).verdict
    assert (verdict.decision, verdict.source) == (
        CheckDecision.INCOMPLETE,
        DecisionSource.STDOUT_JSON,
    )
    with pytest.raises(CheckerFailedError):
        run_check(spec, SUBJECT, "c1")


def test_s3_26_there_is_one_resolver_in_the_tree() -> None:
    top = Path(__file__).resolve().parents[3]
    paths = [
        path.relative_to(top).as_posix()
        for app in ("agents", "plans", "diagnostics", "failsoft", "config")
        for path in (top / app).rglob("*.py")
        if "def resolve_completion_decision" in path.read_text(encoding="utf-8")
    ]
    assert paths == ["failsoft/completion/resolver.py"]


def test_golden_groups_are_named_after_sources() -> None:
    assert set(GROUPS) == {"file-json", "file-text", "stdout-json", "marker", "priority"}
