"""The verdict of a selection: which calls got worse, since when, and what it comes from.

1. Every series' failing calls, slot by slot, against the week before: those that rose
   beyond chance are suspicious, and the strongest says since when.
2. All cells since then, by versions, against the week before then: `find_cause`.
3. The onset once more, from all suspicious series that the cause touches.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log

from diagnostics.core.selection import Selection
from diagnostics.core.statistics import wilson_interval
from diagnostics.core.verdict.cause import LEAST_CALLS, Finding, find_cause
from diagnostics.core.verdict.cells import Cell, Who
from diagnostics.core.verdict.onset import Count, Onset, find_onset
from diagnostics.core.verdict.suspects import Cause
from diagnostics.core.verdict.telling import Advice, Rate, advise, tell
from diagnostics.core.windows import WIDTHS, Grain, floor
from diagnostics.core.wording import plural
from diagnostics.verdict_reading import (
    WEEK,
    Curves,
    Stretch,
    cells_between,
    curves_of,
    evidence_of,
    last_change,
    stretch_of,
    usual_of,
)

SURE = 2.0
"""Evidence beyond what the number of series and slots explains by itself (log)."""
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a selection; times are None unless something degrades."""

    state: str
    sentence: str
    finding: Finding
    who: Who | None = None
    since: datetime | None = None
    since_low: datetime | None = None
    since_high: datetime | None = None
    rate: Rate | None = None
    advice: Sequence[Advice] = ()


def verdict_of(project_id: int, selection: Selection, now: datetime) -> Verdict:
    """Judge the calls that a selection keeps; the number of statements is constant."""
    stretch = stretch_of(selection, now)
    curves = curves_of(project_id, selection, stretch)
    usual = usual_of(project_id, selection, stretch.window.since)
    fired = _fired(curves, usual, stretch)
    if not fired:
        return _calm(curves)
    strongest = max(fired, key=lambda who: fired[who].gain)
    hour = floor(stretch.begin(fired[strongest].at), WIDTHS[Grain.HOUR])
    cells = cells_between(project_id, selection, hour, stretch.window.until)
    before = cells_between(project_id, selection, hour - WEEK, hour)
    finding = find_cause(cells, before)
    if finding.cause in (None, Cause.NOT_ENOUGH_DATA):
        return _unsure(finding)
    hit = [cell for cell in cells if finding.touches(cell.place)]
    touched = {cell.place.who for cell in hit}.intersection(fired) or {strongest}
    onset = _joint([curves[who] for who in touched], max(map(usual, touched)))
    return _degrading(
        project_id, stretch, finding, hit, before, touched, onset or fired[strongest]
    )


def _fired(
    curves: Curves, usual: Callable[[Who], float], stretch: Stretch
) -> Mapping[Who, Onset]:
    alarm = log(max(len(curves) * stretch.count, 2)) + SURE
    found = {who: find_onset(curve, usual(who)) for who, curve in curves.items()}
    return {who: one for who, one in found.items() if one and one.gain >= alarm}


def _calm(curves: Curves) -> Verdict:
    calls = sum(count.calls for curve in curves.values() for count in curve)
    if calls < LEAST_CALLS:
        return _unsure(Finding(Cause.NOT_ENOUGH_DATA))
    models = len({(who.provider, who.model) for who in curves})
    sentence = f"{plural(models, 'model')} within baseline: {plural(calls, 'call')}."
    return Verdict("ok", sentence, Finding(None))


def _unsure(finding: Finding) -> Verdict:
    return Verdict("not_enough_data", "There is not enough data to say.", finding)


def _joint(curves: Sequence[Sequence[Count]], usual: float) -> Onset | None:
    added = [
        Count(sum(one.calls for one in slot), sum(one.failed for one in slot))
        for slot in zip(*curves, strict=True)
    ]
    return find_onset(added, usual)


def _degrading(
    project_id: int,
    stretch: Stretch,
    finding: Finding,
    hit: Sequence[Cell],
    before: Sequence[Cell],
    touched: set[Who],
    onset: Onset,
) -> Verdict:
    since = stretch.begin(onset.at)
    who = _common(touched)
    rate = _rate(hit, [cell for cell in before if cell.place.who in touched])
    evidence = evidence_of(
        project_id,
        next(iter(touched)) if len(touched) == 1 else None,
        since,
        stretch.window.until,
        finding.top_kind,
    )
    changed = last_change(project_id, since + HOUR)
    return Verdict(
        state="degrading",
        sentence=tell(_subject(finding, who), rate, since, finding, changed),
        finding=finding,
        who=who,
        since=since,
        since_low=stretch.begin(onset.low),
        since_high=stretch.begin(onset.high) + stretch.width,
        rate=rate,
        advice=advise(finding.top_kind, finding.cause, evidence),
    )


def _common(touched: set[Who]) -> Who:
    """Give what all series that are hit have in common; None where they differ."""
    first = next(iter(touched))
    return Who(
        *(
            mine if all(mine == its for its in others) else None
            for mine, others in zip(first, zip(*touched, strict=True), strict=True)
        )  # type: ignore[arg-type] # a node that differs is None as well
    )


def _subject(finding: Finding, who: Who) -> str:
    if finding.cause in (Cause.MODEL, Cause.PROVIDER_OUTAGE):
        return finding.value
    if who.model:
        return f"{who.provider}/{who.model}" if who.provider else who.model
    return plural(finding.models, "model")


def _rate(hit: Sequence[Cell], before: Sequence[Cell]) -> Rate:
    """Rate runs when it is runs that end worse, else calls: retries may rescue all."""
    runs, degraded = sum(c.runs for c in hit), sum(c.degraded for c in hit)
    past, past_bad = sum(c.runs for c in before), sum(c.degraded for c in before)
    baseline = past_bad / past if past else None
    if runs >= LEAST_CALLS and wilson_interval(degraded, runs)[0] > (baseline or 0.0):
        return Rate(degraded, runs, baseline)
    calls, failed = sum(c.attempts for c in hit), sum(c.failed for c in hit)
    past, past_bad = sum(c.attempts for c in before), sum(c.failed for c in before)
    return Rate(failed, calls, past_bad / past if past else None, "call")
