"""CPU time of processes, and requests over one connection."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from config.local.guard import PARENT, processes

GROUP = 2
TICKS = os.sysconf("SC_CLK_TCK")
QUIET_SECONDS = 0.6
LONGEST_WAIT_SECONDS = 120.0


def cpu_seconds(groups: Sequence[int]) -> float:
    """Give the CPU time of process groups and their leaders' children so far.

    Ended children are included. Each backend of PostgreSQL is a group of its own.
    """
    total = 0
    for _, fields in processes():
        if int(fields[PARENT]) in groups or int(fields[GROUP]) in groups:
            total += sum(int(ticks) for ticks in fields[11:15])
    return total / TICKS


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process of one thread, in nanoseconds where known."""
    path = Path(f"/proc/{pid}/schedstat")
    if path.exists():
        return int(path.read_text().split()[0]) / 1e9
    return sum(int(ticks) for ticks in dict(processes())[pid][11:13]) / TICKS


def parent_of(pid: int) -> int:
    return int(dict(processes())[pid][PARENT])


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


def cost_of(work: Callable[[], None], groups: Sequence[int], *, waits: bool = False) -> float:
    """Give the CPU seconds of some work of other processes."""
    before = cpu_seconds(groups)
    work()
    return (when_quiet(groups) if waits else cpu_seconds(groups)) - before


def post_all(port: int, path: str, bodies: Iterable[bytes], headers: dict[str, str]) -> None:
    """Post bodies one after the other on one connection; RuntimeError unless 2xx."""
    _ask_all(port, [("POST", path, body, headers) for body in bodies])


def get_all(port: int, path: str, count: int) -> None:
    """Ask for a page so often on one connection; RuntimeError unless 2xx."""
    _ask_all(port, [("GET", path)] * count)


def _ask_all(port: int, requests: Iterable[tuple[Any, ...]]) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    for request in requests:
        connection.request(*request)
        answer = connection.getresponse()
        told = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{request[1]}: {answer.status} {told[:300]!r}")
    connection.close()
