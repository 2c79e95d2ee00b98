"""The first line of the Now page: a sentence made of the series, worst first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from diagnostics.core.charts.mark import Tone
from diagnostics.core.series import MINIMUM_RUNS
from diagnostics.core.standing import Standing, Subject, together
from diagnostics.core.wording import percent, plural

NAMED_BESIDE = 3


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
    worst = together([subject for subject in bad if subject.name == bad[0].name])
    begun = worst.onset
    runs = begun.runs if begun else worst.runs
    share = begun.share if begun else worst.rates.degraded_rate
    mostly = f", mostly {worst.top_kind.replace('_', ' ')}" if worst.top_kind else ""
    rest = (
        f": {worst.name}, {percent(share, 0)} of {plural(runs, 'run')}"
        f"{_against(worst.rates.baseline)}{mostly}."
    )
    others = [subject for subject in bad if subject.name != worst.name]
    told = [f"Affected: {worst.place}."]
    told += [f"Also degrading: {_names(others)}."] if others else []
    told += [f"To watch: {_names(watched)}."] if watched else []
    beside = " ".join([*told, *_rest_told(ran)])
    return Verdict("bad", "Degrading", begun.at if begun else None, rest, beside)


def _rest_told(ran: Sequence[Subject]) -> list[str]:
    count = Counter(subject.standing for subject in ran)
    calm, few = count[Standing.OK], count[Standing.FEW_RUNS]
    told = [f"{plural(calm, 'series', 'series')} within baseline."] if calm else []
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
    named = [f"{subject.name} ({subject.place})" for subject in subjects]
    more = len(named) - NAMED_BESIDE
    return ", ".join(named[:NAMED_BESIDE]) + (f" and {more} more" if more > 0 else "")


def _runs_told(ran: Sequence[Subject], span: str) -> str:
    total = sum(subject.runs for subject in ran)
    return f"{plural(total, 'run')} in {plural(len(ran), 'series', 'series')}, last {span}."
