"""The launcher: a program that does not run as root and does not outlive its starter."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from config.local.launch import NOBODY
from config.local.postgres import LAUNCH

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root leaves uid 0")


def launch(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", str(LAUNCH), *words],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        cwd="/",
    )


@as_root
@pytest.mark.parametrize("way", ["namespace", "identity"])
def test_a_program_leaves_root_and_still_enters_closed_folders(tmp_path: Path, way: str) -> None:
    closed = tmp_path / "closed"
    owned = closed / "owned"
    owned.mkdir(parents=True)
    (closed / "file").write_text("read me")
    closed.chmod(0o700)
    code = (
        "import os, pathlib\n"
        f"pathlib.Path({str(owned)!r}, 'made').write_text('x')\n"
        f"assert os.access({str(closed / 'file')!r}, os.R_OK)\n"
        f"print(os.getuid(), pathlib.Path({str(closed / 'file')!r}).read_text())"
    )
    words = ("--plain-user", way, "--own", str(owned), "--", "/usr/bin/env")
    answer = launch(*words, sys.executable, "-I", "-c", code)
    if "Operation not permitted" in answer.stderr and way == "namespace":
        pytest.skip("user namespaces are closed here")
    assert answer.stdout == f"{NOBODY} read me\n", answer.stderr
    assert (owned / "made").exists()


@as_root
def test_the_folder_follows_when_the_way_changes(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    expected = {"identity": NOBODY, "namespace": 0}
    for way in ("identity", "namespace", "identity"):
        answer = launch("--plain-user", way, "--own", str(tmp_path), "--", "/bin/true")
        if answer.returncode:
            pytest.skip("user namespaces are closed here")
        assert (tmp_path / "inner").stat().st_uid == expected[way]


@pytest.mark.slow
@as_root
@pytest.mark.parametrize("way", [None, "namespace", "identity"])
def test_a_program_ends_with_its_starter(tmp_path: Path, way: str | None) -> None:
    note = tmp_path / "pid"
    words = [sys.executable, "-I", "-S", str(LAUNCH), "--end-with", str(int(signal.SIGKILL))]
    words += ["--plain-user", way] if way else []
    code = (
        "import subprocess, time\n"
        f"child = subprocess.Popen({[*words, '--', '/bin/sleep', '60']!r}, cwd='/')\n"
        "time.sleep(1)\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 10
    while not (note.exists() and note.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child = Path(f"/proc/{note.read_text()}")
    assert b"sleep" in (child / "cmdline").read_bytes()
    starter.kill()
    starter.wait()
    deadline = time.monotonic() + 5
    while child.exists() and ") Z " not in (child / "stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_program_that_is_not_there_fails() -> None:
    assert launch("--", "/nowhere/program").returncode != 0
