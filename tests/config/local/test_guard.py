"""The guard: what a supervisor leaves behind, however it ended, is ended too."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# A program with a child of its own, in a session of its own; both deaf to SIGTERM.
DEAF = (
    "import signal, subprocess, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "if len(sys.argv) > 1:\n"
    "    words = [sys.executable, '-c', sys.argv[1]]\n"
    "    child = subprocess.Popen(words, start_new_session=True)\n"
    "    print(child.pid, flush=True)\n"
    "time.sleep(60)\n"
)

GUARDED = f"""
import os, signal, subprocess, sys
from config.local.guard import guarded

def supervise():
    words = [sys.executable, "-c", {DEAF!r}, {DEAF!r}]
    part = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    print(part.pid, part.stdout.readline().strip(), flush=True)
    {{ending}}

print("code", guarded(supervise), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("os.abort()", -6),
        ("return 3", 3),
        ("raise RuntimeError('a fault of our own')", 1),
    ],
)
def test_nothing_outlives_the_supervisor(ending: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GUARDED.format(ending=ending)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    pids, exit_line = done.stdout.splitlines()
    assert exit_line == f"code {code}"
    for pid in pids.split():
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or ") Z " in state.read_text()
