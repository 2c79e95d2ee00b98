"""Signals: which counts of the rollups a rule looks at, as bad ones (k) out of all (n).

And what the detector that a rule names says of them, in one evaluation of a slice.
"""

import hashlib
import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from uuid import UUID

from diagnostics.alerting.states import DetectorSignal
from diagnostics.analysis.detectors.change import ChangeDetector
from diagnostics.analysis.detectors.thresholds import (
    LEAST_FAILED,
    LONG_WINDOWS,
    SHORT_CALLS,
    SHORT_SECONDS,
    Judgement,
    Parameters,
    Window,
    WindowCounts,
    judge_absence,
    judge_count,
    judge_threshold,
    long_window,
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
SHORT_WINDOWS = (SHORT_SECONDS, *(60 * minutes for minutes in (10, 15, 30, 60, 120, 360)))
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
        bounds = zip(LATENCY, (*LATENCY_BOUNDS_MS, None), strict=True)
        above = [name for name, bound in bounds if bound is None or bound > limit]
        return Measured(("latency_count", *above), lambda row: (sum(row) - row[0], row[0]))
    if signal is Signal.CALL_FAILURE_RATIO and detector == "change":
        return FIRST_ATTEMPTS
    return MEASURED.get(signal)


def measured_kinds(columns: tuple[str, ...]) -> Measured:
    """Count the failing calls of some kinds, out of the calls that were told one by one."""
    return Measured(("attempts", *columns), lambda row: (sum(row) - row[0], row[0]))


Slice = Mapping[str, str | None]


def slice_key(values: Slice) -> UUID:
    """Return the key of a slice: the same values give the same key, in any order."""
    text = json.dumps(dict(values), sort_keys=True, ensure_ascii=False)
    return UUID(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest())


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


def short_window(window: Window) -> WindowCounts:
    """Return the last 5 minutes, or more where they have fewer than 10 calls."""
    counts = WindowCounts(0, 0)
    for seconds in SHORT_WINDOWS:
        counts = window(seconds)
        if counts.calls >= SHORT_CALLS:
            break
    return counts


@dataclass(frozen=True, slots=True)
class DetectorEvaluation:
    """What was found: k bad ones of n, and what of them was compared with the bound.

    `onset` is in seconds, `baseline` a share; both None where the detector knows none.
    `is_usual`: it clears though nothing got better; the level has become the usual one.
    `is_watched`: there is evidence, and not enough to fire.
    """

    said: DetectorSignal
    k: int
    n: int
    value: float
    bound: float
    onset: float | None = None
    baseline: float | None = None
    is_usual: bool = False
    is_watched: bool = False


NOTHING = DetectorEvaluation(DetectorSignal.NO_DATA, 0, 0, 0.0, 0.0)
UNJUDGED = DetectorEvaluation(DetectorSignal.QUIET, 0, 0, 0.0, 0.0)
"""Of a series that has no detector at the time: its alarm stays as it is."""
GONE = DetectorEvaluation(DetectorSignal.CLEARS, 0, 0, 0.0, 0.0)
"""Of a slice that its rule no longer has: it was changed, or nothing is counted there."""


def windows_of(detector: str, parameters: Parameters) -> tuple[int, ...]:
    """Return the windows (seconds) that a detector will ask for."""
    if detector == "count":
        return (int(parameters.seconds),)
    if detector == "threshold":
        return LONG_WINDOWS
    return ()


def judge(
    detector: str, parameters: Parameters, window: Window, *, is_latency: bool = False
) -> DetectorEvaluation:
    """Judge the windows of a slice by `threshold` or `count`."""
    if detector == "count":
        counts = window(int(parameters.seconds))
        fires = counts.failed >= parameters.count
        clears = not fires and judge_count(max(int(parameters.count), 1), counts).clears
        judgement = Judgement(fires, clears, counts, parameters.count)
        return _evaluate(judgement, float(counts.failed), parameters.count)
    limit = SLOW_SHARE if is_latency else parameters.limit
    long = long_window(window)
    # The short window confirms; with too few failures in the long one there is nothing to.
    short = short_window(window) if long.failed >= LEAST_FAILED else long
    judgement = judge_threshold(limit, long, short)
    return _evaluate(judgement, judgement.bound, limit)


def judge_silence(parameters: Parameters, silent_seconds: float) -> DetectorEvaluation:
    counts = WindowCounts(0, int(silent_seconds))
    judgement = judge_absence(silent_seconds, parameters.seconds, counts)
    return _evaluate(judgement, silent_seconds, float(parameters.seconds))


def describe(detector: ChangeDetector) -> DetectorEvaluation:
    fire, counts = detector.fire, detector.counts
    return DetectorEvaluation(
        DetectorSignal.FIRES if fire else DetectorSignal.CLEARS,
        counts.failed,
        counts.calls,
        max(detector.evidence, 0.0),
        detector.alarm,
        fire.onset.at if fire else None,
        detector.baseline,
        any(fire.is_usual for fire in detector.fires[-1:]),
        detector.is_watched,
    )


def news_of(
    minutes: Mapping[int, tuple[int, int]], known: Mapping[int, tuple[int, int]]
) -> list[tuple[float, int, int]]:
    """Tell what calls and failures minutes count beyond what was known of them, oldest first.

    Both are (k, n) by the second that the minute began at; counts that went down (a
    purge) add nothing.
    """
    fed = []
    for minute in sorted(minutes):
        k, n = minutes[minute]
        before_k, before_n = known.get(minute, (0, 0))
        more, more_bad = n - before_n, max(k - before_k, 0)
        if more > 0:
            fed.append((float(minute), more, min(more_bad, more)))
    return fed


def _evaluate(judgement: Judgement, value: float, bound: float) -> DetectorEvaluation:
    counts, signal = judgement.counts, DetectorSignal.QUIET
    if judgement.fires or judgement.clears:
        signal = DetectorSignal.FIRES if judgement.fires else DetectorSignal.CLEARS
    return DetectorEvaluation(signal, counts.failed, counts.calls, value, bound)
