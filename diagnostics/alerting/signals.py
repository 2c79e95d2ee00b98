"""Signals: which counts of the rollups a rule looks at, as bad ones (k) out of all (n)."""

import hashlib
import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from uuid import UUID

from diagnostics.analysis.detectors.thresholds import (
    SHORT_CALLS,
    SHORT_SECONDS,
    Window,
    WindowCounts,
)
from diagnostics.queries.call_counts import counts_runs
from diagnostics.store.rollups import CALL_ERRORS, LATENCY, LATENCY_BOUNDS_MS


class Signal(StrEnum):
    """What is measured, and how pages call it."""

    words: str

    def __new__(cls, value: str, words: str = "") -> "Signal":
        signal = str.__new__(cls, value)
        signal._value_, signal.words = value, words
        return signal

    DEGRADED_RATIO = "degraded_ratio", "degraded runs, share"
    FIRST_PASS_FAILURE_RATIO = "first_pass_failure_ratio", "first-pass failures"
    REPAIR_SUCCESS_RATIO = "repair_success_ratio", "repair success"
    CALL_FAILURE_RATIO = "call_failure_ratio", "failed calls"
    DEGRADED_COUNT = "degraded_count", "degraded runs, count"
    NEW_GROUP = "new_group", "new failures"
    REGRESSED_GROUP = "regressed_group", "regressed failures"
    BREAKER_OPEN = "breaker_open", "open circuit breakers"
    LATENCY_P95 = "latency_p95", "p95 latency"
    RETRY_TOKENS = "retry_tokens", "retry tokens"
    RETRY_MONEY = "retry_money", "retry cost"
    INGEST_REJECTS = "ingest_rejects", "rejected events"
    SOURCE_SILENT = "source_silent", "silent sources"


RATIOS = frozenset(signal for signal in Signal if signal.endswith("_ratio"))
"""Shares of 0 to 1."""
SLOW_SHARE = 0.05
"""A 95th percentile above a limit: more than this share of calls took longer."""
Row = Sequence[int]
Count = tuple[int, int]
"""Bad ones and all, of one stretch of time."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The columns that a signal needs, and how they make (k, n); both in their order."""

    columns: tuple[str, ...]
    count: Callable[[Row], Count]


def _calls(row: Row) -> Count:
    """Calls where they were told one by one, else the runs that were posted."""
    attempts, invalid, first, second, third, fourth, runs, degraded = row
    if counts_runs(attempts, runs):
        return degraded, runs
    return invalid + first + second + third + fourth, attempts


_TRIED = ("tried_2", "tried_3", "tried_4", "tried_5")
_GOOD = ("good_2", "good_3", "good_4", "good_5")
_TOKENS = ("retry_input_tokens", "retry_output_tokens")
MEASURED: Mapping[Signal, Measured] = {
    Signal.DEGRADED_RATIO: Measured(("degraded", "runs"), lambda row: (row[0], row[1])),
    Signal.DEGRADED_COUNT: Measured(("degraded", "runs"), lambda row: (row[0], row[1])),
    # What nothing checked is no first pass, and no failure either.
    Signal.FIRST_PASS_FAILURE_RATIO: Measured(
        ("repaired", "degraded", "runs"), lambda row: (row[0] + row[1], row[2])
    ),
    Signal.REPAIR_SUCCESS_RATIO: Measured(
        ("retries_failed", *_GOOD), lambda row: (row[0], sum(row))
    ),
    Signal.CALL_FAILURE_RATIO: Measured(
        ("attempts", "invalid", *CALL_ERRORS, "runs", "degraded"), _calls
    ),
    Signal.RETRY_TOKENS: Measured((*_TOKENS, "attempts"), lambda row: (row[0] + row[1], row[2])),
}
"""Signals that are read from the minutes of rollups, `latency_p95` beside them."""


def noun_of(signal: str) -> str:
    """Return what a signal counts parts of."""
    by_run = [name for name, how in MEASURED.items() if how.columns[-1] == "runs"]
    return "run" if signal in by_run else "call"


def _first_attempts(row: Row) -> Count:
    """First attempts; calls where a stretch has no other, and runs where only those are told.

    A retry fails more often than a first attempt, and those of one run together: a change
    is judged by what fails independently. An answer with an unknown tool has failed.
    """
    of_calls, retries, tried, good, unknown = row[:8], row[8], row[9:13], row[13:17], row[17]
    k, n = _calls(of_calls)
    if 0 < retries < n:
        k, n = max(k - sum(tried) + sum(good), 0), n - retries
    return min(k + unknown, n), n


FIRST_ATTEMPTS = Measured(
    (*MEASURED[Signal.CALL_FAILURE_RATIO].columns, "retries", *_TRIED, *_GOOD, "unknown_tool"),
    _first_attempts,
)


RUNS = Measured(("runs",), lambda row: (0, row[0]))


def measured(signal: Signal, limit: float = 0.0, detector: str = "") -> Measured | None:
    """Say how a signal is counted by a detector; None for one that has a source of its own.

    `limit` is that of a latency in milliseconds: calls above it are the bad ones.
    """
    if signal is Signal.LATENCY_P95:
        return _latency(limit)
    if signal is Signal.CALL_FAILURE_RATIO and detector == "change":
        return FIRST_ATTEMPTS
    return MEASURED.get(signal)


def measured_kinds(columns: tuple[str, ...]) -> Measured:
    """Count the failing calls of some kinds, out of the calls that were told one by one."""
    return Measured(("attempts", *columns), lambda row: (sum(row) - row[0], row[0]))


def _latency(limit_ms: float) -> Measured:
    above = [
        name
        for name, bound in zip(LATENCY, (*LATENCY_BOUNDS_MS, None), strict=True)
        if bound is None or bound > limit_ms
    ]
    return Measured(("latency_count", *above), lambda row: (sum(row) - row[0], row[0]))


Slice = Mapping[str, str | None]


def slice_key(values: Slice) -> UUID:
    """Return the key of a slice: the same values give the same key, in any order."""
    text = json.dumps(dict(values), sort_keys=True, ensure_ascii=False)
    return UUID(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest())


EMPTY = WindowCounts(0, 0)


def trailing_window(seconds: Sequence[int], k: Iterable[int], n: Iterable[int]) -> Window:
    """Return what counts the last so many seconds, by stretches that end now.

    `seconds` are their lengths, shortest first; `k` and `n` what lies between one and the
    one before it. Who asks for more than is known gets everything.
    """
    bad, calls = list(accumulate(k)), list(accumulate(n))

    def within(wanted: int) -> WindowCounts:
        place = min(bisect_left(seconds, wanted), len(seconds) - 1)
        return WindowCounts(calls[place], bad[place])

    return within


SHORT_WINDOWS = (SHORT_SECONDS, *(60 * minutes for minutes in (10, 15, 30, 60, 120, 360)))


def short_window(window: Window) -> WindowCounts:
    """Return the last 5 minutes, or more where they have fewer than 10 calls."""
    counts = EMPTY
    for seconds in SHORT_WINDOWS:
        counts = window(seconds)
        if counts.calls >= SHORT_CALLS:
            break
    return counts
