"""What a rule says of a slice: one evaluation by the detector it names."""

from collections.abc import Mapping
from dataclasses import dataclass

from diagnostics.alerting.signals import SLOW_SHARE, short_window
from diagnostics.alerting.states import DetectorSignal
from diagnostics.analysis.detectors.change import ChangeDetector
from diagnostics.analysis.detectors.thresholds import (
    LEAST_FAILED,
    LONG_WINDOWS,
    Judgement,
    Parameters,
    Window,
    WindowCounts,
    judge_absence,
    judge_count,
    judge_threshold,
    long_window,
)


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
        return _count(parameters, window)
    limit = SLOW_SHARE if is_latency else parameters.limit
    long = long_window(window)
    # The short window confirms; with too few failures in the long one there is nothing to.
    short = short_window(window) if long.failed >= LEAST_FAILED else long
    judgement = judge_threshold(limit, long, short)
    return _evaluate(judgement, judgement.bound, limit)


def judge_silence(parameters: Parameters, silent_seconds: float) -> DetectorEvaluation:
    """Judge how long nothing came."""
    counts = WindowCounts(0, int(silent_seconds))
    judgement = judge_absence(silent_seconds, parameters.seconds, counts)
    return _evaluate(judgement, silent_seconds, float(parameters.seconds))


def describe(detector: ChangeDetector) -> DetectorEvaluation:
    """Say how a series stands by its detector."""
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


def _count(parameters: Parameters, window: Window) -> DetectorEvaluation:
    counts = window(int(parameters.seconds))
    fires = counts.failed >= parameters.count
    clears = not fires and judge_count(max(int(parameters.count), 1), counts).clears
    judgement = Judgement(fires, clears, counts, parameters.count)
    return _evaluate(judgement, float(counts.failed), parameters.count)


def _evaluate(judgement: Judgement, value: float, bound: float) -> DetectorEvaluation:
    counts, signal = judgement.counts, DetectorSignal.QUIET
    if judgement.fires or judgement.clears:
        signal = DetectorSignal.FIRES if judgement.fires else DetectorSignal.CLEARS
    return DetectorEvaluation(signal, counts.failed, counts.calls, value, bound)
