"""From counts to a series item: rates, their interval, baseline and state."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from diagnostics.core.statistics import wilson_interval

T = TypeVar("T")

MINIMUM_RUNS = 20
MARGIN = 0.05
DEFAULT_BASELINE = 0.0


class SeriesState(StrEnum):
    """How a series stands, worst first in `SEVERITY`."""

    DEGRADING = "degrading"
    WATCH = "watch"
    NO_DATA = "no_data"
    OK = "ok"


SEVERITY = {
    SeriesState.DEGRADING: 0,
    SeriesState.WATCH: 1,
    SeriesState.OK: 2,
    SeriesState.NO_DATA: 3,
}


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one series in one window.

    A run ends in exactly one `succeeded` or `degraded` event.
    """

    runs: int = 0
    degraded: int = 0
    first_pass: int = 0
    repaired: int = 0
    retry_tokens: int = 0
    retry_milliseconds: int = 0
    baseline_runs: int = 0
    baseline_degraded: int = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares between 0 and 1, None where nothing was counted."""

    degraded_rate: float | None
    degraded_low: float | None
    degraded_high: float | None
    baseline: float | None
    first_pass_rate: float | None
    repair_success_rate: float | None
    state: SeriesState


def rate_series(counts: Counts) -> Rates:
    """Turn the counts of a window into rates and a state.

    Repair success is repaired runs over the runs whose first attempt failed.
    """
    baseline = _share(counts.baseline_degraded, counts.baseline_runs)
    if counts.runs == 0:
        return Rates(None, None, None, baseline, None, None, SeriesState.NO_DATA)
    low, high = wilson_interval(counts.degraded, counts.runs)
    return Rates(
        degraded_rate=counts.degraded / counts.runs,
        degraded_low=low,
        degraded_high=high,
        baseline=baseline,
        first_pass_rate=counts.first_pass / counts.runs,
        repair_success_rate=_share(counts.repaired, counts.runs - counts.first_pass),
        state=judge(counts.degraded, counts.runs, baseline),
    )


def judge(degraded: int, runs: int, baseline: float | None) -> SeriesState:
    """Say how a window stands against its baseline.

    The bar is max(2 x baseline, baseline + 5 points). Degrading: at least 20 runs and
    the lower Wilson bound above the bar; watch: only the rate itself is above it.
    """
    if runs == 0:
        return SeriesState.NO_DATA
    base = DEFAULT_BASELINE if baseline is None else baseline
    bar = max(2 * base, base + MARGIN)
    low, _ = wilson_interval(degraded, runs)
    if runs >= MINIMUM_RUNS and low > bar:
        return SeriesState.DEGRADING
    return SeriesState.WATCH if degraded / runs > bar else SeriesState.OK


def sort_worst_first(items: Iterable[tuple[Rates, T]]) -> list[tuple[Rates, T]]:
    """Order series worst first: by state, then by the lower bound of the rate."""
    return sorted(
        items,
        key=lambda item: (SEVERITY[item[0].state], -(item[0].degraded_low or 0.0)),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None
