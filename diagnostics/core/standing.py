"""How a series stands: over the whole range, or since its trouble began."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from enum import StrEnum

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
    """Since when a series degrades, and its runs since then."""

    at: datetime
    runs: int
    degraded: int

    @property
    def share(self) -> float:
        """Degraded share since the onset."""
        return self.degraded / self.runs


@dataclass(frozen=True, slots=True)
class Subject:
    """A series, or several of one model, as a sentence sees it."""

    name: str
    place: str
    counts: Counts
    kinds: Counter[str] = field(default_factory=Counter)
    onset: Onset | None = None

    @property
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

    @property
    def standing(self) -> Standing:
        """The state over the whole range, or since the onset when that is worse.

        A range may begin long before the trouble: over 24 h an hour of failures is small.
        """
        rates = self.rates
        recent = self.onset and judge(
            self.onset.degraded, self.onset.runs, rates.baseline
        )
        if SeriesState.DEGRADING in {recent, rates.state}:
            return Standing.DEGRADING
        if self.runs < MINIMUM_RUNS:
            return Standing.FEW_RUNS if self.runs else Standing.NO_RUNS
        return Standing(rates.state.value)


def together(subjects: Sequence[Subject]) -> Subject:
    """Add up series of one model; the onset is the earliest, if each has one."""
    counted = [astuple(subject.counts) for subject in subjects]
    onsets = [subject.onset for subject in subjects if subject.onset]
    begun = (
        Onset(
            min(onset.at for onset in onsets),
            sum(onset.runs for onset in onsets),
            sum(onset.degraded for onset in onsets),
        )
        if len(onsets) == len(subjects)
        else None
    )
    return Subject(
        name=subjects[0].name,
        place=", ".join(subject.place for subject in subjects),
        counts=Counts(*map(sum, zip(*counted, strict=True))),
        kinds=sum((subject.kinds for subject in subjects), Counter()),
        onset=begun,
    )
