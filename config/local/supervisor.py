"""Start the parts in order, restart one that dies, stop them in reverse order."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from config.local.binaries import BinaryMissingError
from config.local.folder import Folder
from config.local.parts import LocalProgram
from config.local.postgres import PostgresError

TICK_SECONDS = 0.1
WATCH_SECONDS = 0.5
FIRST_BACK_OFF_SECONDS = 0.5
LONGEST_BACK_OFF_SECONDS = 30.0
STEADY_SECONDS = 60.0  # after this long a part has earned a quick restart again
LOG_LIMIT_BYTES = 8 << 20
SAME_SIGNAL_SECONDS = 1.0  # Ctrl-C reaches us from the terminal and from the guard


class PartError(Exception):
    """A part cannot start; the message is one line: which, why, where to look."""


class StopRequestedError(Exception):
    """The start is broken off by a signal."""


@dataclass
class Running:
    """A part and its process."""

    part: LocalProgram
    process: subprocess.Popen[bytes]
    started: float
    failures: int = 0
    restart_at: float = field(default=0.0)  # 0: it runs


def wait_for(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for the end of a process; False when it takes longer."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
        return True
    return False


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a part: itself and its children."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)


def say(text: str) -> None:
    """Print a line to the terminal, if there still is one."""
    with suppress(OSError):
        print(text, flush=True)  # noqa: T201 - the terminal is meant


def last_words(path: Path) -> str:
    """Return the last line of a log: usually the reason of a failure."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


class Supervisor:
    """The parts that run, and what to do with them."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.running: list[Running] = []
        self.stop_signals = 0
        self._last_signal = 0.0

    def listen(self) -> None:
        """Let SIGINT, SIGTERM and SIGHUP ask for an ordered stop."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last_signal > SAME_SIGNAL_SECONDS:
            self.stop_signals += 1
        self._last_signal = now

    # Starting

    def start_together(self, parts: Iterable[LocalProgram]) -> None:
        """Start parts that need nothing of each other; return when all are ready."""
        started = [self._start(part) for part in parts]
        for running in started:
            self._await_ready(running)

    def _start(self, part: LocalProgram) -> Running:
        try:
            part.before()
            process = self._spawn(part)
        except (OSError, PostgresError, BinaryMissingError) as error:
            raise PartError(f"{part.name} cannot start: {error}") from error
        running = Running(part, process, time.monotonic())
        self.running.append(running)
        return running

    def _spawn(self, part: LocalProgram) -> subprocess.Popen[bytes]:
        with self._log(part).open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own words
                part.command,
                env=dict(part.env),
                cwd="/" if part.name == "postgres" else self.folder.path,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _await_ready(self, running: Running) -> None:
        part = running.part
        deadline = running.started + part.ready_within_seconds
        while not self._is_ready(running):
            if self.stop_signals:
                raise StopRequestedError
            if time.monotonic() > deadline:
                seconds = part.ready_within_seconds
                raise self._failure(part, f"not ready within {seconds:.0f} s")
            time.sleep(TICK_SECONDS)
        if part.once:
            self.running.remove(running)

    def _is_ready(self, running: Running) -> bool:
        code = running.process.poll()
        if code is None:
            return not running.part.once and running.part.ready()
        if code == 0 and running.part.once:
            return True
        raise self._failure(running.part, last_words(self._log(running.part)))

    def _failure(self, part: LocalProgram, reason: str) -> PartError:
        return PartError(f"{part.name} cannot start: {reason} (log: {self._log(part)})")

    def _log(self, part: LocalProgram) -> Path:
        return self.folder.logs / f"{part.name}.log"

    # Watching

    def watch(self) -> None:
        """Keep every part running until somebody asks for the end."""
        while not self.stop_signals:
            self.look_after_all()
            time.sleep(WATCH_SECONDS)

    def look_after_all(self) -> None:
        """Restart what has died, cut logs that have grown too long."""
        for running in self.running:
            self._look_after(running)
            self._bound_log(self._log(running.part))

    def _look_after(self, running: Running) -> None:
        now = time.monotonic()
        if running.restart_at:
            if now >= running.restart_at:
                self._restart(running, now)
        elif running.process.poll() is not None:
            end_group(running.process)  # its children must not work on beside the new
            if now - running.started > STEADY_SECONDS:
                running.failures = 0
            wait = FIRST_BACK_OFF_SECONDS * 2**running.failures
            running.restart_at = now + min(wait, LONGEST_BACK_OFF_SECONDS)
            running.failures += 1
            code = running.process.returncode
            say(f"failsoft: {running.part.name} ended ({code}); it starts again")

    def _restart(self, running: Running, now: float) -> None:
        running.started, running.restart_at = now, 0.0
        try:
            running.part.before()
            running.process = self._spawn(running.part)
        except (OSError, PostgresError, BinaryMissingError) as error:
            running.restart_at = now + LONGEST_BACK_OFF_SECONDS
            say(f"failsoft: {running.part.name} cannot start: {error}")

    def _bound_log(self, path: Path) -> None:
        # The part keeps its file open in append mode, so it is copied, then emptied.
        if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
            path.with_suffix(".log.1").write_bytes(path.read_bytes())
            with path.open("r+b") as file:
                file.truncate(0)

    # Stopping

    def stop(self, groups: Sequence[Sequence[str]]) -> None:
        """Stop the parts, group by group; what is named nowhere comes last."""
        names = {name for group in groups for name in group}
        rest = [run.part.name for run in self.running if run.part.name not in names]
        for group in (*groups, rest):
            self._stop_together([r for r in self.running if r.part.name in group])

    def _stop_together(self, group: list[Running]) -> None:
        steps = max((len(running.part.stop) for running in group), default=0)
        for step in range(steps):
            asked = [
                (running, running.part.stop[step])
                for running in group
                if step < len(running.part.stop) and running.process.poll() is None
            ]
            for running, (number, _) in asked:
                with suppress(ProcessLookupError):
                    running.process.send_signal(number)
            begin = time.monotonic()
            for running, (_, seconds) in asked:
                patience = 0.5 if self.stop_signals > 1 else seconds
                wait_for(running.process, begin + patience - time.monotonic())
        for running in group:
            end_group(running.process)
