"""The first line of the Now page: a sentence made of the series, worst first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from diagnostics.core.charts.mark import Tone
from diagnostics.core.series import MINIMUM_RUNS, Rates, SeriesState, judge
from diagnostics.core.wording import percent, plural

NAMED_BESIDE = 3


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
    """A series as the sentence sees it."""

    name: str
    place: str
    rates: Rates
    runs: int
    top_kind: str | None
    onset: Onset | None

    @property
    def standing(self) -> Standing:
        """The state over the whole range, or since the onset when that is worse.

        A range may begin long before the trouble: over 24 h an hour of failures is small.
        """
        recent = self.onset and judge(
            self.onset.degraded, self.onset.runs, self.rates.baseline
        )
        if SeriesState.DEGRADING in {recent, self.rates.state}:
            return Standing.DEGRADING
        if self.runs < MINIMUM_RUNS:
            return Standing.FEW_RUNS if self.runs else Standing.NO_RUNS
        return Standing(self.rates.state.value)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A sentence in two halves with the onset between them, and one beside it."""

    tone: Tone
    lead: str
    since: datetime | None
    rest: str
    beside: str

    @property
    def headline(self) -> str:
        """The sentence as plain text, its time in UTC."""
        since = f" since {self.since:%H:%M}" if self.since else ""
        return f"{self.lead}{since}{self.rest}"


def verdict_line(subjects: Sequence[Subject], span: str) -> Verdict:
    """Say how the series stand in the last `span`; first match wins.

    1. nothing ran; 2. a series degrades; 3. no series has enough runs; 4. a series is to
    be watched; 5. all is within baseline.
    """
    ran = [subject for subject in subjects if subject.runs]
    bad = [subject for subject in ran if subject.standing is Standing.DEGRADING]
    watched = [subject for subject in ran if subject.standing is Standing.WATCH]
    busiest = max((subject.runs for subject in ran), default=0)
    if not ran:
        return Verdict("quiet", f"No run ended in the last {span}", None, ".", "")
    if bad:
        return _degrading(bad, watched, ran)
    if busiest < MINIMUM_RUNS:
        rest = f": {plural(busiest, 'run')} of the busiest series in the last {span}."
        told = f"A state is given from {MINIMUM_RUNS} runs of a series on."
        return Verdict("quiet", "Not enough data", None, rest, told)
    if watched:
        return _watching(watched, ran)
    return Verdict("good", _calm(ran), None, ".", _runs_told(ran, span))


def _calm(ran: Sequence[Subject]) -> str:
    names = {subject.name for subject in ran}
    if len(names) == 1:
        return f"{ran[0].name} is within baseline"
    return f"All {len(names)} models within baseline"


def _degrading(
    bad: Sequence[Subject], watched: Sequence[Subject], ran: Sequence[Subject]
) -> Verdict:
    worst = bad[0]
    begun = worst.onset
    runs = begun.runs if begun else worst.runs
    share = begun.share if begun else worst.rates.degraded_rate
    mostly = f", mostly {worst.top_kind.replace('_', ' ')}" if worst.top_kind else ""
    rest = (
        f": {worst.name}, {percent(share, 0)} of {plural(runs, 'run')}"
        f"{_against(worst.rates.baseline)}{mostly}."
    )
    since = begun.at if begun else None
    return Verdict("bad", "Degrading", since, rest, _beside(bad, watched, ran))


def _beside(
    bad: Sequence[Subject], watched: Sequence[Subject], ran: Sequence[Subject]
) -> str:
    told = [f"Affected: {bad[0].place}."]
    if len(bad) > 1:
        told.append(f"Also degrading: {_names(bad[1:])}.")
    if watched:
        told.append(f"To watch: {_names(watched)}.")
    return " ".join([*told, *_rest_told(ran)])


def _rest_told(ran: Sequence[Subject]) -> list[str]:
    count = Counter(subject.standing for subject in ran)
    calm, few = count[Standing.OK], count[Standing.FEW_RUNS]
    told = [f"{plural(calm, 'other', 'others')} within baseline."] if calm else []
    return told + ([f"{few} with fewer than {MINIMUM_RUNS} runs."] if few else [])


def _watching(watched: Sequence[Subject], ran: Sequence[Subject]) -> Verdict:
    first = watched[0]
    rest = (
        f": {first.name}, {percent(first.rates.degraded_rate)} of "
        f"{plural(first.runs, 'run')} degraded{_against(first.rates.baseline)}, "
        "not yet beyond chance."
    )
    others = [f"Also: {_names(watched[1:])}."] if len(watched) > 1 else []
    beside = " ".join([f"Affected: {first.place}.", *others, *_rest_told(ran)])
    return Verdict("warn", "To watch", None, rest, beside)


def _against(baseline: float | None) -> str:
    if baseline is None:
        return " (no baseline yet)"
    return f" (baseline {percent(baseline, 0 if baseline >= 0.1 else 1)})"


def _names(subjects: Sequence[Subject]) -> str:
    named = [subject.name for subject in subjects[:NAMED_BESIDE]]
    more = len(subjects) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _runs_told(ran: Sequence[Subject], span: str) -> str:
    total = sum(subject.runs for subject in ran)
    return f"{plural(total, 'run')} in {plural(len(ran), 'series', 'series')}, last {span}."
