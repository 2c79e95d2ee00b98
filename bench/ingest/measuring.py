"""CPU time of processes, and requests over one connection."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from http.client import HTTPConnection
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
QUIET_SECONDS = 0.6
LONGEST_WAIT_SECONDS = 120.0


def cpu_seconds(groups: Sequence[int]) -> float:
    """Give the CPU time of process groups and their leaders' children so far.

    Ended children are included. Each backend of PostgreSQL is a group of its own.
    """
    total = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat[1]) in groups or int(stat[2]) in groups:
            total += sum(int(ticks) for ticks in stat[11:15])
    return total / TICKS


def parent_of(pid: int) -> int:
    """Give the parent of a process."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(stat[1])


def when_quiet(groups: Sequence[int]) -> float:
    """Wait until process groups do nothing any more; give their CPU time."""
    deadline = time.monotonic() + LONGEST_WAIT_SECONDS
    before = cpu_seconds(groups)
    while time.monotonic() < deadline:
        time.sleep(QUIET_SECONDS)
        now = cpu_seconds(groups)
        if now - before <= 2 / TICKS:
            return now
        before = now
    return before


def cost_of(work: Callable[[], None], groups: Sequence[int], waits: bool) -> tuple[float, float]:
    """Give the CPU and the wall seconds of some work of other processes."""
    before, begun = cpu_seconds(groups), time.perf_counter()
    work()
    wall = time.perf_counter() - begun
    after = when_quiet(groups) if waits else cpu_seconds(groups)
    return after - before, wall


def post_all(port: int, path: str, bodies: Iterable[bytes], headers: dict[str, str]) -> None:
    """Post bodies one after the other on one connection; RuntimeError unless 2xx."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    for body in bodies:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        told = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {told[:300]!r}")
    connection.close()


def get_all(port: int, path: str, count: int) -> None:
    """Ask for a page so often on one connection; RuntimeError unless 2xx."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    for _ in range(count):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status}")
    connection.close()
