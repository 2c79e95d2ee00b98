"""Allow-listed commands as checkers: no shell, a small environment, bounded, killed as a group."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from ctypes import CDLL
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings

MAX_OUTPUT_BYTES = 1024 * 1024
KEPT_ERROR_BYTES = 4 * 1024
CHUNK_BYTES = 64 * 1024
# The longest wait for a pipe: a process that left the group may hold it open.
DRAIN_SECONDS = 2.0
PATH = "/usr/local/bin:/usr/bin:/bin"
_PR_SET_PDEATHSIG = 1
# Loaded before any fork: nothing may be loaded between fork and exec.
_libc = CDLL(None) if sys.platform == "linux" else None


class UnknownCommandError(LookupError):
    """no command of this name is allowed"""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The output of a command and its exit code, None for a timeout."""

    output: str
    is_cut: bool
    error: str
    code: int | None


def command_names() -> list[str]:
    return sorted(settings.FAILSOFT_CHECK_COMMANDS)


def run_command(
    name: str,
    placeholders: Mapping[str, str],
    input_bytes: bytes,
    folder: Path,
    environment: Mapping[str, str],
    timeout_seconds: float,
) -> CommandResult:
    """Run an allowed command in `folder` with `input_bytes` as its standard input.

    `placeholders` are the values of `${name}` placeholders in its arguments. Raises
    UnknownCommandError, or OSError when the command cannot be started. Its whole process
    group ends with it.
    """
    argv = settings.FAILSOFT_CHECK_COMMANDS.get(name)
    if argv is None:
        raise UnknownCommandError(name)
    base = {"PATH": os.environ.get("PATH", PATH), "HOME": str(folder), "LANG": "C.UTF-8"}
    process = subprocess.Popen(  # noqa: S603 - a list from the settings, no shell
        [fill(part, placeholders) for part in argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**base, **environment},
        start_new_session=True,
        preexec_fn=_end_with_worker,
    )
    out = _Drain(process.stdout, MAX_OUTPUT_BYTES)
    err = _Drain(process.stderr, KEPT_ERROR_BYTES)
    threading.Thread(target=_feed, args=(process.stdin, input_bytes), daemon=True).start()
    code = _wait(process, timeout_seconds)
    return CommandResult(out.text(), out.is_cut, err.text(), code)


def fill(text: str, placeholders: Mapping[str, str]) -> str:
    """Return a text with its `${name}` placeholders filled; unknown ones stay."""
    for key, value in placeholders.items():
        text = text.replace(f"${{{key}}}", value)
    return text


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # Kill the processes that it left running, too.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class _Drain:
    """Reads a pipe to its end in a thread, and keeps the first `limit` bytes."""

    def __init__(self, pipe: IO[bytes] | None, limit: int) -> None:
        self._kept = bytearray()
        self._limit = limit
        self.is_cut = False
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def text(self) -> str:
        self._thread.join(DRAIN_SECONDS)
        self.is_cut = self.is_cut or self._thread.is_alive()
        return bytes(self._kept).decode("utf-8", "replace")

    def _read(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None  # noqa: S101 - Popen was called with PIPE
        with pipe:
            while chunk := os.read(pipe.fileno(), CHUNK_BYTES):
                space = self._limit - len(self._kept)
                self._kept += chunk[:space]
                self.is_cut = self.is_cut or len(chunk) > space


def _feed(pipe: IO[bytes] | None, data: bytes) -> None:
    assert pipe is not None  # noqa: S101 - Popen was called with PIPE
    # Not every checker reads its standard input.
    with suppress(OSError), pipe:
        pipe.write(data)


def _end_with_worker() -> None:
    """Die with the worker: a checker that outlives it could still write its decision."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
