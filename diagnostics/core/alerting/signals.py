"""Signals: which counts of the rollups a rule looks at, as bad ones (k) out of all (n)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from diagnostics.core.rollups import CALL_ERRORS, LATENCY, LATENCY_BOUNDS_MS


class Signal(StrEnum):
    """What is measured."""

    DEGRADED_RATIO = "degraded_ratio"
    FIRST_PASS_FAILURE_RATIO = "first_pass_failure_ratio"  # noqa: S105 - no password
    REPAIR_SUCCESS_RATIO = "repair_success_ratio"
    CALL_FAILURE_RATIO = "call_failure_ratio"
    DEGRADED_COUNT = "degraded_count"
    NEW_GROUP = "new_group"
    REGRESSED_GROUP = "regressed_group"
    BREAKER_OPEN = "breaker_open"
    LATENCY_P95 = "latency_p95"
    RETRY_TOKENS = "retry_tokens"
    RETRY_MONEY = "retry_money"
    INGEST_REJECTS = "ingest_rejects"
    SOURCE_SILENT = "source_silent"


RATIOS = frozenset(
    {
        Signal.DEGRADED_RATIO,
        Signal.FIRST_PASS_FAILURE_RATIO,
        Signal.REPAIR_SUCCESS_RATIO,
        Signal.CALL_FAILURE_RATIO,
    }
)
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
    if attempts:
        return invalid + first + second + third + fourth, attempts
    return degraded, runs


_GOOD = ("good_2", "good_3", "good_4", "good_5")
_TOKENS = ("retry_input_tokens", "retry_output_tokens")
MEASURED: Mapping[Signal, Measured] = {
    Signal.DEGRADED_RATIO: Measured(("degraded", "runs"), lambda row: (row[0], row[1])),
    Signal.DEGRADED_COUNT: Measured(("degraded", "runs"), lambda row: (row[0], row[1])),
    Signal.FIRST_PASS_FAILURE_RATIO: Measured(
        ("ok_first", "runs"), lambda row: (row[1] - row[0], row[1])
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


def measured(signal: Signal, limit: float = 0.0) -> Measured | None:
    """Say how a signal is counted; None for one that has a source of its own.

    `limit` is that of a latency in milliseconds: calls above it are the bad ones.
    """
    if signal is Signal.LATENCY_P95:
        return _latency(limit)
    return MEASURED.get(signal)


def _latency(limit_ms: float) -> Measured:
    above = [
        name
        for name, bound in zip(LATENCY, (*LATENCY_BOUNDS_MS, None), strict=True)
        if bound is None or bound > limit_ms
    ]
    return Measured(("latency_count", *above), lambda row: (sum(row) - row[0], row[0]))
