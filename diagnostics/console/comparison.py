"""Two stretches of calls side by side: rates, differences with intervals, a sentence.

Differences are A less B. One is clear when its 95 % interval (Newcombe) leaves zero out and
both sides have 20 trials; many at once are compared, so one in twenty is clear by chance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from django.utils.text import capfirst

from diagnostics.analysis.statistics import LEAST_TRIALS
from diagnostics.figures import Tone, percent, plural, points, shorten
from diagnostics.ingest.models import Deploy, reported_deploys
from diagnostics.queries.call_counts import EVERYTHING, CallCounts, Side, kind_words
from diagnostics.queries.matrix import Excess, excess
from diagnostics.queries.series import window_for, window_of
from diagnostics.queries.sums import Question, sum_rollups
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import Selection
from diagnostics.store.windows import TimeWindow

MOST_KINDS = 8
LONGEST_NAME = 60
RATES = (
    ("degraded", "Degraded", "runs", True),
    ("failed", "Failed calls", "calls", True),
    ("first_pass", "First pass", "first attempts", False),
    ("unaltered", "First pass, unaltered", "first attempts", False),
    ("repaired", "Recovered", "failed first", False),
    ("unchecked", "Unchecked", "calls", True),
)


@dataclass(frozen=True, slots=True)
class RateDifference(Excess):
    """One rate on both sides; `more_is_worse` says which direction is bad."""

    label: str
    noun: str
    more_is_worse: bool = True
    kind: str = ""

    @property
    def tone(self) -> Tone:
        """Bad where A is clearly worse, good where it is clearly better."""
        if not self.is_clear:
            return "quiet"
        return "bad" if (self.low > 0) is self.more_is_worse else "good"

    @property
    def word(self) -> str:
        if not self.is_enough:
            return "not enough data"
        return {"bad": "worse", "good": "better"}.get(self.tone, "no clear difference")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rates first, then the kinds of failure that differ most."""

    rates: Sequence[RateDifference]
    kinds: Sequence[RateDifference]
    tone: Tone
    sentence: str
    beside: str
    names: tuple[str, str]


def compare(a: CallCounts, b: CallCounts, names: tuple[str, str] = ("A", "B")) -> Comparison:
    noun = "runs" if "run" in (a.noun, b.noun) else "calls"
    rates = [
        difference_of(
            label,
            noun if unit == "calls" else unit,
            a.rates[rate],
            b.rates[rate],
            more_is_worse=more_is_worse,
        )
        for rate, label, unit, more_is_worse in RATES
    ]
    kinds = [
        difference_of(kind_words(kind), noun, a.side_of(kind), b.side_of(kind), kind=kind)
        for kind in dict.fromkeys([*a.by_kind, *b.by_kind])
    ]
    kinds = [replace(kind, among=len(kinds)) for kind in kinds]
    # The clear differences first, each by its size.
    kinds.sort(key=lambda kind: (not kind.is_clear, -abs(kind.difference or 0.0)))
    kinds = kinds[:MOST_KINDS]
    return Comparison(rates, kinds, *_conclusion(rates, kinds, *names), names)


def difference_of(
    label: str, noun: str, a: Side, b: Side, *, more_is_worse: bool = True, kind: str = ""
) -> RateDifference:
    """Compare two shares; more of a kind than calls counts as all of them."""
    difference = excess(a.bounded, b.bounded)
    sides = difference.a, difference.b, difference.low, difference.high
    return RateDifference(*sides, label, noun, more_is_worse, kind)


def _conclusion(
    rates: Sequence[RateDifference], kinds: Sequence[RateDifference], a: str, b: str
) -> tuple[Tone, str, str]:
    degraded, failed = rates[0], rates[1]
    known = [rate for rate in (degraded, failed) if rate.is_enough]
    if not known:
        return (
            "quiet",
            "Not enough data to compare.",
            f"Both sides need at least {LEAST_TRIALS} calls or runs.",
        )
    shown = next((rate for rate in known if rate.is_clear), known[0])
    top = next((kind for kind in kinds if kind.is_clear and kind.tone == shown.tone), None)
    shares = [
        f"{percent(side.share)} of {plural(side.trials, shown.noun[:-1])}"
        for side in (shown.a, shown.b)
    ]
    between = f"95 % interval {points(shown.low)} to {points(shown.high)}"
    what = "degrades" if shown is degraded else "fails"
    if a.startswith("all "):
        what = what.removesuffix("s")
    if not shown.is_clear:
        sentence = f"No clear difference: {a} {what} {shares[0]}, {b} {shares[1]}."
        return "quiet", sentence, f"{points(shown.difference)}, {between}."
    kind = f", mostly {top.label}" if top else ""
    direction = "more" if shown.low > 0 else "less"
    # Values keep their spelling.
    a = capfirst(a) if a.startswith(("all ", "this ", "the ")) else a
    sentence = f"{a} {what} {direction} than {b}: {' against '.join(shares)}{kind}."
    return shown.tone, sentence, f"{points(shown.difference)}, {between}."


WEEK = timedelta(days=7)
MATCHED = ("prompt_version", "schema", "schema_version")
Sums = Mapping[str, int]
Version = tuple[str | None, ...]


class Against(StrEnum):
    PERIOD = "period"
    WEEK = "week"
    DEPLOY = "deploy"
    SAME = "same"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class ComparedSide:
    window: TimeWindow
    terms: Sequence[Term]

    @property
    def values(self) -> Mapping[str, str]:
        values: dict[str, str] = {}
        for term in self.terms:
            value = term.value or "unknown"
            text = f"not {value}" if term.is_negated else value
            values[term.field] = f"{values[term.field]}, {text}" if term.field in values else text
        return {field: shorten(text, LONGEST_NAME) for field, text in values.items()}


@dataclass(frozen=True, slots=True)
class Parts:
    """Both sides; `deploy` stands between them when it was asked for and is known."""

    a: ComparedSide
    b: ComparedSide
    deploy: Deploy | None = None


def parts_of(
    project_id: int,
    selection: Selection,
    other: Selection,
    against: Against,
    now: datetime,
    deploy_id: int | None = None,
) -> Parts:
    """Choose both windows, around the latest deploy unless told; without one, the time before."""
    terms, others = selection.rollup_terms, other.rollup_terms
    window = window_of(selection, now)
    deploy = None
    if against is Against.DEPLOY:
        known = reported_deploys(project_id, until=min(window.until, now))
        deploy = (known.filter(pk=deploy_id).first() if deploy_id else None) or known.first()
    if deploy is not None:
        window = window_for(deploy.at, min(window.until, now), terms, now)
    before = _other_window(other, against, window, now)
    return Parts(ComparedSide(window, terms), ComparedSide(before, others), deploy)


def sums_by_version(project_id: int, part: ComparedSide) -> dict[Version, Sums]:
    """Add up everything by prompt and schema version, in whole hours."""
    question = Question(part.window.in_hours, MATCHED, EVERYTHING, part.terms)
    rows = sum_rollups(project_id, question)
    width = len(MATCHED)
    return {tuple(row[:width]): dict(zip(EVERYTHING, row[width:], strict=True)) for row in rows}


def add_sums(rows: Sequence[Sums]) -> Sums:
    return {name: sum(row[name] for row in rows) for name in EVERYTHING}


def _other_window(
    other: Selection, against: Against, window: TimeWindow, now: datetime
) -> TimeWindow:
    # The hour that is not over has no counterpart.
    ended = min(window.until, now)
    if against is Against.SAME:
        return window
    if against is Against.CUSTOM and other.is_custom:
        return window_of(other, now)
    until = ended - WEEK if against is Against.WEEK else window.since
    return window_for(until - (ended - window.since), until, other.rollup_terms, now)


TIMES: Mapping[Against, tuple[str, str]] = {
    Against.PERIOD: ("this period", "the previous period"),
    Against.WEEK: ("this period", "the same time one week earlier"),
    Against.DEPLOY: ("the time since the deploy", "the time before"),
    Against.SAME: ("A", "B"),
    Against.CUSTOM: ("this period", "the other period"),
}
NAMED = ("model", "prompt_version", "release")


def names_of(parts: Parts, against: Against) -> tuple[str, str]:
    """Name both sides by the first field in which they differ, else by their times."""
    ours, theirs = parts.a.values, parts.b.values
    fields = dict.fromkeys((*NAMED, *ours, *theirs))
    for field in fields:
        if ours.get(field) != theirs.get(field):
            everything = f"all {field.replace('_', ' ')}s"
            return ours.get(field, everything), theirs.get(field, everything)
    return TIMES[against]
