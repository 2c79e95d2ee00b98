"""The cost of an answer: of its statements, of the whole, and of the server's processor."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection

from bench.database import server_cpu_seconds
from bench.growth import timed

ROUNDS = 40
SECONDS = 10
Answer = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of one answer: p95 of its SQL and of all of it, mean of the server."""

    sql_ms: float
    answer_ms: float
    cpu_ms: float


class _Clocked:
    """Adds up what statements take, their rows included."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, execute: Callable[..., Any], *words: Any) -> Any:  # noqa: ANN401
        began = time.perf_counter()
        try:
            return execute(*words)
        finally:
            self.seconds += time.perf_counter() - began


def cost_of(ask: Answer, rounds: int = ROUNDS) -> Cost:
    """Ask once, to warm it, and then so many times, or for some seconds."""
    ask()
    pid = connection.connection.info.backend_pid
    before = server_cpu_seconds([pid])
    taken: list[tuple[float, float]] = []
    end = time.perf_counter() + SECONDS
    while len(taken) < rounds and (not taken or time.perf_counter() < end):
        taken.append(_clocked(ask))
    cpu = server_cpu_seconds([pid]) - before
    sql, whole = (sorted(column) for column in zip(*taken, strict=True))
    place = math.ceil(0.95 * len(taken)) - 1
    return Cost(1000 * sql[place], 1000 * whole[place], 1000 * cpu / len(taken))


def _clocked(ask: Answer) -> tuple[float, float]:
    clocked = _Clocked()
    with connection.execute_wrapper(clocked):
        whole = timed(ask, time.perf_counter)
    return clocked.seconds, whole
