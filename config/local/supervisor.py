"""Start the parts in order, restart one that dies, stop them in reverse order."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from config.local.binaries import BinaryMissingError
from config.local.folder import Folder
from config.local.guard import PARENT, handle_stop_signals, processes
from config.local.parts import LocalProgram
from config.local.postgres import PostgresError

# The fields of a process's state with its own time and that of its ended children.
TIMES = slice(11, 15)


class StartProgress:
    """Notices when something neither reaches a new state nor computes.

    Computing is using at least `share` of a processor during `seconds`. `measure_cpu` returns
    the CPU time that was used so far.
    """

    def __init__(
        self, seconds: float, share: float, measure_cpu: Callable[[], float], now: float
    ) -> None:
        self.seconds, self._share, self._measure_cpu = seconds, share, measure_cpu
        self._since, self._cpu_seconds = now, measure_cpu()
        self._state: object = None

    def is_over(self, now: float, state: object) -> bool:
        if state != self._state:
            self._since, self._state = now, state
        if now - self._since <= self.seconds:
            return False
        # Only now: it reads the state of every process.
        used_before, self._cpu_seconds = self._cpu_seconds, self._measure_cpu()
        self._since = now
        return self._cpu_seconds - used_before < self._share * self.seconds


def cpu_seconds_below(roots: Iterable[int]) -> float:
    """Return the CPU time of processes and their descendants, ended ones included (Linux)."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for pid, fields in processes():
        parents[pid], ticks[pid] = int(fields[PARENT]), sum(map(int, fields[TIMES]))
    below = set(roots)
    pending = set(ticks) - below
    while added := {pid for pid in pending if parents[pid] in below}:
        below |= added
        pending -= added
    return sum(ticks.get(pid, 0) for pid in below) / os.sysconf("SC_CLK_TCK")


TICK_SECONDS = 0.1
WATCH_SECONDS = 0.5
PRINT_SECONDS = 15.0  # between two lines of a slow start
# A part that starts computes: on a crowded machine with much less than one processor.
BUSY_SHARE = 0.02
FIRST_BACK_OFF_SECONDS = 0.5
LONGEST_BACK_OFF_SECONDS = 30.0
STEADY_SECONDS = 60.0  # a part that ran this long is restarted quickly again
LOG_LIMIT_BYTES = 8 << 20
SAME_SIGNAL_SECONDS = 1.0  # Ctrl-C arrives from the terminal and from the guard


class PartError(Exception):
    """A part cannot start; the message has its name, the reason and the log."""


class StopRequestedError(Exception):
    """A signal interrupted the start."""


@dataclass
class Running:
    part: LocalProgram
    process: subprocess.Popen[bytes]
    started: float
    failures: int = 0
    restart_at: float = 0.0  # 0 while it runs


def end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)


def print_line(text: str) -> None:
    """Print a line to the terminal, if it is still open."""
    with suppress(OSError):
        print(text, flush=True)  # noqa: T201 - the terminal is meant


def last_line(path: Path) -> str:
    """Return the last line of a log, usually the reason of a failure; a hint behind its error."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    printed = [line.strip() for line in lines if line.strip()] or ["no output"]
    return " ".join(printed[-2:] if printed[-1].startswith("HINT:") else printed[-1:])


class Supervisor:
    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.running: list[Running] = []
        self.stop_signals = 0
        self._last_signal = 0.0
        self._printed_at = 0.0

    def handle_stop_signals(self) -> None:
        handle_stop_signals(self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last_signal > SAME_SIGNAL_SECONDS:
            self.stop_signals += 1
        self._last_signal = now

    # Starting

    def start_together(self, parts: Iterable[LocalProgram]) -> None:
        self._printed_at = time.monotonic()
        started = [self._start(part) for part in parts]
        for running in started:
            self._await_ready(running)

    def _start(self, part: LocalProgram) -> Running:
        try:
            part.before()
            process = self._spawn(part)
        except (OSError, PostgresError, BinaryMissingError) as error:
            if self.stop_signals:  # Ctrl-C ended the program that prepares the part, too
                raise StopRequestedError from error
            raise PartError(f"{part.name} cannot start: {error}") from error
        running = Running(part, process, time.monotonic())
        self.running.append(running)
        return running

    def _spawn(self, part: LocalProgram) -> subprocess.Popen[bytes]:
        with self._log(part).open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - no user input
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
        log, seconds = self._log(part), part.ready_within_seconds
        progress = self.watch_progress(seconds, BUSY_SHARE)
        while not self._is_ready(running):
            if self.is_stuck(
                progress, log.stat().st_size, lambda: f"{part.name}: {last_line(log)}"
            ):
                raise self._failure(part, f"not ready within {seconds:.0f} s of its last progress")
        if part.once:
            self.running.remove(running)

    def watch_progress(self, seconds: float, share: float) -> StartProgress:
        """Return a watch over the parts that run; `share` of a processor is progress."""
        roots = [running.process.pid for running in self.running]
        return StartProgress(seconds, share, lambda: cpu_seconds_below(roots), time.monotonic())

    def is_stuck(self, progress: StartProgress, state: object, describe: Callable[[], str]) -> bool:
        """Wait a moment; return whether there was no progress for too long.

        Prints what `describe` returns from time to time. Raises StopRequestedError.
        """
        if self.stop_signals:
            raise StopRequestedError
        time.sleep(TICK_SECONDS)
        now = time.monotonic()
        if now - self._printed_at > PRINT_SECONDS:
            self._printed_at = now
            print_line(f"failsoft: still starting; {describe()}")
        return progress.is_over(now, state)

    def _is_ready(self, running: Running) -> bool:
        code = running.process.poll()
        if code is None:
            return not running.part.once and running.part.ready()
        if code == 0 and running.part.once:
            return True
        if self.stop_signals:
            raise StopRequestedError
        raise self._failure(running.part, last_line(self._log(running.part)))

    def _failure(self, part: LocalProgram, reason: str) -> PartError:
        return PartError(f"{part.name} cannot start: {reason} (log: {self._log(part)})")

    def _log(self, part: LocalProgram) -> Path:
        return self.folder.logs / f"{part.name}.log"

    # Watching

    def watch(self) -> None:
        while not self.stop_signals:
            self.check_parts()
            time.sleep(WATCH_SECONDS)

    def check_parts(self) -> None:
        for running in self.running:
            self._check_part(running)
            path = self._log(running.part)
            # The part keeps its file open in append mode, so it is copied, then emptied.
            if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
                copy = path.with_suffix(".log.1")
                try:
                    copy.write_bytes(path.read_bytes())
                except OSError:  # on a full disk the room counts for more
                    copy.unlink(missing_ok=True)
                with path.open("r+b") as file:
                    file.truncate(0)

    def _check_part(self, running: Running) -> None:
        now = time.monotonic()
        if running.restart_at:
            if now >= running.restart_at:
                running.started, running.restart_at = now, 0.0
                try:
                    running.part.before()
                    running.process = self._spawn(running.part)
                except (OSError, PostgresError, BinaryMissingError) as error:
                    running.restart_at = now + LONGEST_BACK_OFF_SECONDS
                    print_line(f"failsoft: {running.part.name} cannot start: {error}")
        elif running.process.poll() is not None:
            end_group(running.process)  # its children must not run alongside the new process
            if now - running.started > STEADY_SECONDS:
                running.failures = 0
            back_off = FIRST_BACK_OFF_SECONDS * 2 ** min(running.failures, 10)
            running.restart_at = now + min(back_off, LONGEST_BACK_OFF_SECONDS)
            running.failures += 1
            code = running.process.returncode
            print_line(f"failsoft: {running.part.name} ended ({code}); it starts again")

    # Stopping

    def stop(self, groups: Sequence[Sequence[str]]) -> None:
        """Stop the parts group by group; unnamed parts are stopped last."""
        names = {name for group in groups for name in group}
        rest = [running.part.name for running in self.running if running.part.name not in names]
        for group in (*groups, rest):
            self._stop_together([running for running in self.running if running.part.name in group])

    def _stop_together(self, group: list[Running]) -> None:
        steps = max((len(running.part.stop) for running in group), default=0)
        for step in range(steps):
            signalled = [
                (running, running.part.stop[step])
                for running in group
                if step < len(running.part.stop) and running.process.poll() is None
            ]
            for running, (number, _) in signalled:
                with suppress(ProcessLookupError):
                    running.process.send_signal(number)
            started_at = time.monotonic()
            for running, (_, seconds) in signalled:
                timeout = 0.5 if self.stop_signals > 1 else seconds
                with suppress(subprocess.TimeoutExpired):
                    running.process.wait(started_at + timeout - time.monotonic())
        for running in group:
            end_group(running.process)
