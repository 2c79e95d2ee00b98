"""Allow-listed commands as checkers: no shell, a small environment, bounded, killed whole."""

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
# A process that left the group may hold a pipe open: nobody waits longer for it.
DRAIN_SECONDS = 2.0
PATH = "/usr/local/bin:/usr/bin:/bin"
_PR_SET_PDEATHSIG = 1
# Before any fork: between fork and exec nothing is loaded.
_libc = CDLL(None) if sys.platform == "linux" else None


class UnknownCommandError(LookupError):
    """no command of this name is allowed"""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command left: its output, and how it ended; a `code` of None is a timeout."""

    output: str
    is_cut: bool
    error: str
    code: int | None


def command_names() -> list[str]:
    """The commands that may be checkers."""
    return sorted(settings.FAILSOFT_CHECK_COMMANDS)


def run_command(
    name: str,
    filled: Mapping[str, str],
    given: bytes,
    folder: Path,
    environment: Mapping[str, str],
    timeout_seconds: float,
) -> CommandResult:
    """Run an allowed command in `folder` with `given` as its standard input.

    `filled` are the values of `${name}` places in its arguments. UnknownCommandError,
    OSError when it cannot be started. Whatever it started ends with it.
    """
    argv = settings.FAILSOFT_CHECK_COMMANDS.get(name)
    if argv is None:
        raise UnknownCommandError(name)
    process = subprocess.Popen(  # noqa: S603 - a list from the settings, no shell
        [fill(part, filled) for part in argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=_environment(folder, environment),
        start_new_session=True,
        preexec_fn=_end_with_worker,
    )
    out = _Drain(process.stdout, MAX_OUTPUT_BYTES)
    err = _Drain(process.stderr, KEPT_ERROR_BYTES)
    threading.Thread(target=_feed, args=(process.stdin, given), daemon=True).start()
    code = _wait(process, timeout_seconds)
    return CommandResult(out.text(), out.is_cut, err.text(), code)


def fill(text: str, filled: Mapping[str, str]) -> str:
    """Put values in the `${name}` places of a text; other places stay."""
    for key, value in filled.items():
        text = text.replace(f"${{{key}}}", value)
    return text


def _environment(folder: Path, extra: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", PATH), "HOME": str(folder), "LANG": "C.UTF-8", **extra}


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # Also what it left running behind its back.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class _Drain:
    """Reads a pipe to its end in a thread, and keeps the beginning."""

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
        assert pipe is not None  # noqa: S101 - it was asked for
        with pipe:
            while chunk := os.read(pipe.fileno(), CHUNK_BYTES):
                room = self._limit - len(self._kept)
                self._kept += chunk[:room]
                self.is_cut = self.is_cut or len(chunk) > room


def _feed(pipe: IO[bytes] | None, given: bytes) -> None:
    assert pipe is not None  # noqa: S101 - it was asked for
    # Not every checker reads what it is given.
    with suppress(OSError), pipe:
        pipe.write(given)


def _end_with_worker() -> None:
    """Die with the worker: a checker that outlives it could still write its decision."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
