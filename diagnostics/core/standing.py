"""How a series stands: over the whole range, or since its trouble began."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from diagnostics.core.onset import Bucket, onset
from diagnostics.core.series import (
    MINIMUM_RUNS,
    Counts,
    Rates,
    SeriesState,
    judge,
    rate_series,
)


class Standing(StrEnum):
    """How a series stands, worst first."""

    DEGRADING = "degrading"
    WATCH = "watch"
    OK = "ok"
    FEW_RUNS = "few runs"
    NO_RUNS = "no runs"


ORDER = {standing: place for place, standing in enumerate(Standing)}


@dataclass(frozen=True, slots=True)
class Onset:
    """Since when a series degrades: the bucket, its time, and the runs since then."""

    index: int
    at: datetime
    runs: int
    degraded: int

    @property
    def share(self) -> float:
        """Degraded share since the onset."""
        return self.degraded / self.runs


@dataclass(frozen=True, slots=True)
class Curve:
    """The runs of a series in equal buckets from `since` on, oldest first."""

    since: datetime
    width: timedelta
    buckets: Sequence[Bucket]

    def onset(self, baseline: float | None) -> Onset | None:
        """Find the onset of a degradation that goes on."""
        begun = onset(self.buckets, baseline)
        if begun is None:
            return None
        bad = self.buckets[begun:]
        return Onset(
            begun,
            self.since + begun * self.width,
            sum(bucket.runs for bucket in bad),
            sum(bucket.degraded for bucket in bad),
        )


@dataclass(frozen=True)
class Subject:
    """A series, or several of one model, as a sentence sees it."""

    name: str
    place: str
    counts: Counts
    kinds: Counter[str] = field(default_factory=Counter)
    curve: Curve | None = None

    @cached_property
    def onset(self) -> Onset | None:
        """Since when it degrades, if the curve shows it."""
        return self.curve.onset(self.rates.baseline) if self.curve else None

    @cached_property
    def rates(self) -> Rates:
        """The rates of the counts."""
        return rate_series(self.counts)

    @property
    def runs(self) -> int:
        """Runs in the range."""
        return self.counts.runs

    @property
    def top_kind(self) -> str | None:
        """The most frequent kind of failure."""
        top = self.kinds.most_common(1)
        return top[0][0] if top else None

    @cached_property
    def standing(self) -> Standing:
        """The state over the whole range, or since the onset when that is worse.

        A range may begin long before the trouble: over 24 h an hour of failures is small.
        """
        rates, begun = self.rates, self.onset
        recent = begun and judge(begun.degraded, begun.runs, rates.baseline)
        if SeriesState.DEGRADING in {recent, rates.state}:
            return Standing.DEGRADING
        if self.runs < MINIMUM_RUNS:
            return Standing.FEW_RUNS if self.runs else Standing.NO_RUNS
        return Standing(rates.state.value)
