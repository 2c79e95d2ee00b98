"""Whether a start makes progress: a busy machine is waited for, a start that hangs is not."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

# Fields of /proc/PID/stat behind the name: parent, own time, time of its ended children.
PARENT, TIMES = 1, slice(11, 15)


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
        """Whether there was no progress for `seconds`."""
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
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in brackets, may contain anything.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            pid = int(path.parent.name)
            parents[pid], ticks[pid] = int(fields[PARENT]), sum(map(int, fields[TIMES]))
    below = set(roots)
    pending = set(ticks) - below
    while added := {pid for pid in pending if parents[pid] in below}:
        below |= added
        pending -= added
    return sum(ticks.get(pid, 0) for pid in below) / os.sysconf("SC_CLK_TCK")
