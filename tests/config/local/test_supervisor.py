"""The supervisor with small parts of its own: order, restart, stop, reasons."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.local.folder import Folder, prepare_folder
from config.local.parts import LocalProgram
from config.local.supervisor import PartError, StopRequestedError, Supervisor, last_line

WAIT = "import signal, time\ntime.sleep(60)"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return prepare_folder(tmp_path / "data")


@pytest.fixture
def supervisor(folder: Folder) -> Iterator[Supervisor]:
    supervisor = Supervisor(folder)
    yield supervisor
    supervisor.stop([])


def make_part(name: str, code: str, **options: object) -> LocalProgram:
    command = [sys.executable, "-I", "-S", "-c", code]
    return LocalProgram(name, command, dict(os.environ), **options)  # type: ignore[arg-type]  # a test's shorthand


def ends_noted(name: str, notes: Path) -> str:
    """Code of a part that writes its name when it is asked to end."""
    return (
        "import os, signal, sys, time\n"
        f"def note(*_):\n"
        f"    os.write(os.open({str(notes)!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT),"
        f" b'{name} ')\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, note)\n"
        f"open({str(notes)!r} + '.{name}', 'w').close()\n"
        "time.sleep(60)\n"
    )


def test_parts_stop_in_the_order_named_the_rest_last(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    for name in ("database", "web", "beat"):
        ready = Path(f"{notes}.{name}")
        part = make_part(name, ends_noted(name, notes), ready=ready.exists)
        supervisor.start_together([part])
    supervisor.stop([["beat"], ["web"]])
    assert notes.read_text() == "beat web database "


def test_a_part_is_ready_before_the_next_one_starts(supervisor: Supervisor, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    slow = f"import time\ntime.sleep(0.3)\nopen({str(flag)!r}, 'w').close()\ntime.sleep(60)"
    supervisor.start_together([make_part("slow", slow, ready=flag.exists)])
    assert flag.exists()


def test_a_part_that_ends_at_once_says_why(supervisor: Supervisor) -> None:
    code = "raise SystemExit('no room on the disk')"
    part = make_part("web", code, ready=lambda: False)
    with pytest.raises(PartError, match=r"^web cannot start: no room .* \(log: .*\)$"):
        supervisor.start_together([part])


def test_a_program_that_is_not_there_is_named(supervisor: Supervisor) -> None:
    part = LocalProgram("broker", ["/nowhere/valkey-server"], {})
    with pytest.raises(PartError, match=r"broker cannot start: .*/nowhere/"):
        supervisor.start_together([part])


def test_a_part_that_is_never_ready_is_given_up(supervisor: Supervisor) -> None:
    part = make_part("web", WAIT, ready=lambda: False, ready_within_seconds=0.3)
    with pytest.raises(PartError, match="not ready within"):
        supervisor.start_together([part])


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "import time\nfor n in range(6):\n    print(n, flush=True)\n    time.sleep(0.2)",
        "import time\nuntil = time.process_time() + 1\nwhile time.process_time() < until: pass",
        "import subprocess, sys\nwork = 'import time\\nwhile time.process_time() < 1: pass'\n"
        "subprocess.run([sys.executable, '-c', work], start_new_session=True)",
    ],
    ids=["it writes", "it computes", "a child of it computes"],
)
def test_a_step_that_makes_progress_is_waited_for(supervisor: Supervisor, code: str) -> None:
    supervisor.start_together([make_part("prepare", code, once=True, ready_within_seconds=0.6)])


def test_a_slow_start_says_what_it_does(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("config.local.supervisor.PRINT_SECONDS", 0.2)
    code = "import time\nprint('tables (step 1 of 6)', flush=True)\ntime.sleep(1)"
    supervisor.start_together([make_part("prepare", code, once=True)])
    assert "failsoft: still starting; prepare: tables (step 1 of 6)" in capsys.readouterr().out


def test_ctrl_c_that_ends_a_step_first_is_no_failure(supervisor: Supervisor) -> None:
    supervisor.stop_signals = 1
    with pytest.raises(StopRequestedError):
        supervisor.start_together([make_part("prepare", "raise SystemExit('ended')", once=True)])
    with pytest.raises(StopRequestedError):
        supervisor.start_together([LocalProgram("broker", ["/nowhere/valkey-server"], {})])


def test_a_step_is_waited_for_and_not_restarted(supervisor: Supervisor) -> None:
    supervisor.start_together([make_part("prepare", "print(1)", once=True)])
    assert supervisor.running == []


def test_a_step_that_fails_breaks_the_start(supervisor: Supervisor) -> None:
    part = make_part("prepare", "raise SystemExit('a migration is missing')", once=True)
    with pytest.raises(PartError, match="prepare cannot start: a migration is missing"):
        supervisor.start_together([part])


@pytest.mark.slow
def test_a_dead_part_starts_again_later_and_later(supervisor: Supervisor) -> None:
    supervisor.start_together([make_part("worker", WAIT)])
    (worker,) = supervisor.running
    waits = []
    for _ in range(3):
        worker.process.kill()
        worker.process.wait()
        begin = time.monotonic()
        while worker.process.poll() is not None:
            supervisor.check_parts()
            time.sleep(0.01)
        waits.append(time.monotonic() - begin)
    supervisor.stop([])
    for wait, expected in zip(waits, (0.5, 1.0, 2.0), strict=True):
        assert expected <= wait < expected + 1


def test_a_part_that_fails_all_night_is_still_restarted(supervisor: Supervisor) -> None:
    supervisor.start_together([make_part("worker", WAIT)])
    (worker,) = supervisor.running
    worker.failures = 1_024
    worker.process.kill()
    worker.process.wait()
    supervisor.check_parts()
    assert 29 < worker.restart_at - time.monotonic() <= 30
    supervisor.stop([])


def test_children_of_a_dead_part_are_ended_too(supervisor: Supervisor, tmp_path: Path) -> None:
    note = tmp_path / "child"
    code = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {WAIT!r}])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    part = make_part("worker", code, ready=lambda: note.exists() and note.read_text() != "")
    supervisor.start_together([part])
    child = int(note.read_text())
    supervisor.running[0].process.kill()
    supervisor.running[0].process.wait()
    supervisor.check_parts()
    time.sleep(0.2)
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or ") Z " in state.read_text()


def test_a_part_that_ignores_the_request_is_killed(supervisor: Supervisor, tmp_path: Path) -> None:
    flag = tmp_path / "deaf"
    deaf = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(flag)!r}, 'w').close()\ntime.sleep(60)"
    )
    part = make_part("web", deaf, stop=((signal.SIGTERM, 0.2),), ready=flag.exists)
    supervisor.start_together([part])
    (web,) = supervisor.running
    begin = time.monotonic()
    supervisor.stop([])
    assert web.process.returncode == -signal.SIGKILL
    assert time.monotonic() - begin < 5


def test_a_long_log_is_cut_and_its_tail_kept(
    supervisor: Supervisor, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.local.supervisor.LOG_LIMIT_BYTES", 1000)
    supervisor.start_together([make_part("worker", WAIT)])
    log = folder.logs / "worker.log"
    with log.open("ab", buffering=0) as file:
        file.write(b"x" * 2000)
        supervisor.check_parts()
        file.write(b"after")
    assert log.read_bytes() == b"after"
    assert (folder.logs / "worker.log.1").read_bytes() == b"x" * 2000


def test_a_full_disk_costs_a_long_log_its_tail_and_nothing_else(
    supervisor: Supervisor, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.local.supervisor.LOG_LIMIT_BYTES", 1000)
    supervisor.start_together([make_part("worker", WAIT)])
    log = folder.logs / "worker.log"
    log.write_bytes(b"x" * 2000)
    # A device that is always full.
    (folder.logs / "worker.log.1").symlink_to("/dev/full")
    supervisor.check_parts()
    assert log.read_bytes() == b""


def test_signals_are_counted_once_when_they_come_twice(supervisor: Supervisor) -> None:
    before = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
    try:
        supervisor.handle_stop_signals()
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert supervisor.stop_signals == 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_start_can_be_broken_off(supervisor: Supervisor) -> None:
    def ask() -> None:
        supervisor.stop_signals = 1

    threading.Timer(0.2, ask).start()
    with pytest.raises(StopRequestedError):
        supervisor.start_together([make_part("web", WAIT, ready=lambda: False)])


_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def test_the_hint_of_a_failed_check_comes_behind_its_error(tmp_path: Path) -> None:
    log = tmp_path / "prepare.log"
    log.write_text("starting\n?: (config.E005) Events are kept 5 days.\n\tHINT: Raise it.\n\n")
    assert last_line(log) == "?: (config.E005) Events are kept 5 days. HINT: Raise it."
    log.write_text("starting\nTypeError: no\n")
    assert last_line(log) == "TypeError: no"
