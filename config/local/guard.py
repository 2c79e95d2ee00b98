"""The guard: no process outlives the supervisor, even when it is killed.

The guard is the parent of the supervisor. Orphans below it become its children (the "child
subreaper" of the kernel), so after the end of the supervisor the guard ends every process that
the supervisor started. When the guard is killed, the kernel signals the supervisor.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

from config.local.launch import end_with_starter

PR_SET_CHILD_SUBREAPER = 36
# The field of a process's state with its parent.
PARENT = 1
POLITE_SECONDS = 3.0
LAST_SECONDS = 5.0
TICK_SECONDS = 0.05
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def processes() -> Iterator[tuple[int, list[str]]]:
    """Yield the pid of each process, and the fields of its state that follow its name (Linux)."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in brackets, may contain anything.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            yield int(path.parent.name), fields


def children() -> list[int]:
    own_pid = os.getpid()
    return [pid for pid, fields in processes() if int(fields[PARENT]) == own_pid]


def end_children(number: signal.Signals, seconds: float, *, repeat: bool = False) -> bool:
    """Signal all children and wait for their end; return False at the timeout.

    With `repeat`, every child is signalled again at each tick.
    """
    signalled: set[int] = set()
    deadline = time.monotonic() + seconds
    while pids := children():
        for pid in pids if repeat else set(pids) - signalled:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        signalled.update(pids)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > deadline:
            return False
        time.sleep(TICK_SECONDS)
    return True


def handle_stop_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    """Call `handler` for every signal that asks for a stop, for those held back as well."""
    for number in STOP_SIGNALS:
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def guarded(supervise: Callable[[], int]) -> int:
    """Run `supervise` in a child; return its exit code when all its processes have ended.

    `supervise` has to call handle_stop_signals: until then they are held back.
    """
    if sys.platform == "linux":
        # Orphans below this process become its children.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Held back until each process has its handlers: none dies of Ctrl-C with the other left.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    pid = os.fork()
    if pid == 0:
        end_with_starter(signal.SIGTERM)
        try:
            code = supervise()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)

    def forward(number: int, frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    handle_stop_signals(forward)
    ended_pid, status = os.waitpid(-1, 0)
    while ended_pid != pid:
        ended_pid, status = os.waitpid(-1, 0)
    if not end_children(signal.SIGTERM, POLITE_SECONDS):
        end_children(signal.SIGKILL, LAST_SECONDS, repeat=True)
    return os.waitstatus_to_exitcode(status)
