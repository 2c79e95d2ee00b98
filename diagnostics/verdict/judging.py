"""The judgement of series that degrade, from counts alone.

1. Since when is what their detectors say; the best known onset parts what is compared.
2. All cells since then, by version, against the week before: `find_causes`.
3. A cause has the best known onset of the series that it touches; a new version that is the cause
   gives it to the second.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from diagnostics.analysis.series import SeriesKey, SeriesOnset
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.store.windows import WIDTHS, Grain, floor
from diagnostics.verdict.cause import LEAST_CALLS, Cause, Finding
from diagnostics.verdict.cells import CountCell, without_failure_only
from diagnostics.verdict.curves import (
    SHORTEST,
    Curves,
    Stretch,
    VerdictRange,
    noise_before,
    stretch_of,
)
from diagnostics.verdict.findings import find_causes, is_shifted
from diagnostics.verdict.hypotheses import FirstSeen, ReportedDeploy, Timing, calls_by
from diagnostics.verdict.pooled import onset_of_kinds, past_of, suspect
from diagnostics.verdict.rates import CellBaseline

WEEK = timedelta(days=7)
AROUND = timedelta(hours=6)
"""How far from the onset a version may start: at first it may have few calls."""
HOUR, DAY = WIDTHS[Grain.HOUR], WIDTHS[Grain.DAY]


class VerdictCounts(Protocol):
    """The counts of the calls in question."""

    @property
    def stretch(self) -> Stretch:
        """Return the slots of the judgement."""

    def curves(self, stretch: Stretch, of: frozenset[SeriesKey] | None = None) -> Curves:
        """Return the calls and failures of series (None: all) in each slot of a stretch."""

    def cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return what was counted of every place in whole hours between two times."""

    def series_cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return the counts of every series, to the minute where minutes are kept."""

    def cells_since(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return the same without the calls of its hour before `since`, if they are known."""

    def begun(self, since: datetime, until: datetime) -> Sequence[FirstSeen]:
        """Return the first call of each version between two times."""

    def deploys(self, since: datetime, until: datetime) -> Sequence[ReportedDeploy]:
        """Return the deploys between two times."""


Onsets = Mapping[SeriesKey, SeriesOnset]
"""Since when series degrade, by their detectors; the others do not."""
Over = tuple[datetime, datetime]
"""From when to when something was worse."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of a judgement; times are None unless something is or was worse."""

    finding: Finding
    calls: int = 0
    models: int = 0
    unrated: int = 0
    """Failures whose senders report no success: they have no rate."""
    since: datetime | None = None
    since_low: datetime | None = None
    since_high: datetime | None = None
    over: Over | None = None
    """The latest degradation if it has ended."""
    touched: frozenset[SeriesKey] = frozenset()
    hit: Sequence[CountCell] = field(default=(), repr=False)
    before: Sequence[CountCell] = field(default=(), repr=False)
    tells_ends: bool = False
    """Whether its senders report how runs with failed calls ended."""
    is_new: bool = False
    """Whether no call is older than the latest day: nothing is known of what is usual."""
    shifted: bool = False
    """Whether the rate rose only because calls moved to series with higher baselines."""


def judge_range(
    requested: VerdictRange,
    count: Callable[[Stretch], VerdictCounts],
    onsets: Onsets,
    over: Over | None = None,
) -> Sequence[Diagnosis]:
    """Judge a range in which series degrade, and something has ended lately.

    Return a diagnosis of each cause, the largest first; a single one if nothing is worse.
    """
    fired, is_well = list(onsets), True
    if not fired:
        latest = replace(requested, since=max(requested.since, requested.until - SHORTEST))
        counts = count(stretch_of(latest))
        onsets, is_well = suspect(counts.cells, counts.curves, counts.stretch, over and over[1])
    lows = [onset.low - DAY for onset in onsets.values()]
    longer = replace(requested, since=min([requested.since, *lows]))
    diagnoses = judge(count(stretch_of(longer)), onsets, over, fired, is_well=is_well)
    if fired or onsets:
        return diagnoses
    is_new = not counts.cells(*past_of(counts.stretch))
    return [replace(diagnosis, is_new=is_new) for diagnosis in diagnoses]


def judge(
    counts: VerdictCounts,
    onsets: Onsets,
    over: Over | None,
    fired: Collection[SeriesKey],
    *,
    is_well: bool = True,
) -> Sequence[Diagnosis]:
    """Return a diagnosis of each cause, the largest first; the same counts give the same.

    `fired` are the series that degrade by themselves; without any, all may be well together.
    """
    hours = counts.stretch.in_hours
    curves = counts.curves(hours)
    onsets = {series: onset for series, onset in onsets.items() if series in curves}
    if not onsets:
        return [_calm_diagnosis(curves, over, is_well=is_well)]
    onset, until = _sharpest(onsets, onsets), counts.stretch.window.until
    cells, before, timing = _around_onset(counts, onset, onsets)
    noise = noise_before(curves, hours, onset.low)
    noise /= max((until - onset.low) / hours.width, 1.0)
    findings = find_causes(cells, before, timing, noise, fired)
    if findings[0].cause in (None, Cause.NOT_ENOUGH_DATA):
        if not fired:
            return [_calm_diagnosis(curves, over, is_well=is_well)]
        findings = [_unexplained(cells, onsets)]
    diagnoses = [
        _diagnose(counts, finding, onsets, (cells, before), curves, several=len(findings) > 1)
        for finding in findings
    ]
    return sorted(diagnoses, key=lambda diagnosis: -diagnosis.finding.excess)


def _sharpest(onsets: Onsets, touched: Collection[SeriesKey]) -> SeriesOnset:
    """Return the onset of some series that is known best; of all, if none of them has one."""
    own_onsets = [onset for series, onset in onsets.items() if series in touched]
    return min(own_onsets or onsets.values(), key=lambda onset: (onset.high - onset.low, onset.at))


def _unexplained(cells: Iterable[CountCell], onsets: Onsets) -> Finding:
    """Return what degrades where no cause explains it: the series themselves."""
    kinds = Counter[str]()
    for cell in cells:
        if cell.place.series in onsets:
            kinds.update(cell.failures)
    risen = tuple(kind for kind, _ in kinds.most_common(1))
    return Finding(
        Cause.NOT_ENOUGH_DATA,
        touches=lambda place: place.series in onsets,
        top_kind="".join(risen),
        risen=risen,
    )


def _around_onset(
    counts: VerdictCounts, onset: SeriesOnset, onsets: Onsets
) -> tuple[list[CountCell], list[CountCell], Timing]:
    """Return the cells since the onset, and of the week before anything got worse."""
    since = floor(onset.at, HOUR)
    healthy = min(since, *(floor(onset.low, HOUR) for onset in onsets.values()))
    timing = replace(_timing(counts, onset, onsets), day=counts.cells(healthy - DAY, healthy))
    cells = counts.cells(since, counts.stretch.window.until)
    before = [*counts.cells(healthy - WEEK, healthy)]
    if healthy < since:
        # Calls in which it may have begun, of series with even fewer calls before these. A series
        # that has none is new: it may fail from its first call on.
        doubtful = counts.cells(healthy, since)
        known, doubted = (calls_by(lambda at: at.series, some) for some in (before, doubtful))
        needed = {series for series in doubted if 0 < known[series] < doubted[series]}
        before += [cell for cell in doubtful if cell.place.series in needed or not known]
    cells, before = without_failure_only(cells, before)
    return cells, before, timing


def _diagnose(
    counts: VerdictCounts,
    finding: Finding,
    onsets: Onsets,
    around: tuple[Sequence[CountCell], Sequence[CountCell]],
    curves: Curves,
    *,
    several: bool,
) -> Diagnosis:
    cells, before = around
    touched = _series_hit(cells, before, finding, onsets)
    known = _sharpest(onsets, touched)
    # A series that was first called in the minute that runs has no slot yet.
    slots = counts.curves(counts.stretch, touched) if several else {}
    if touched and touched <= slots.keys():
        # The series may have degraded by another cause before.
        baseline, kinds = CellBaseline.of(before), finding.risen[:1]
        healthy = min(onset.low for onset in onsets.values())
        noise = noise_before(curves, counts.stretch.in_hours, healthy)
        known = onset_of_kinds(kinds, touched, baseline, slots, counts.stretch, noise)
    since, until = _since(counts, finding, known, onsets), counts.stretch.window.until

    def of_series(since: datetime, until: datetime) -> Sequence[CountCell]:
        return [cell for cell in counts.series_cells(since, until) if cell.place.series in touched]

    def of_cause(cells: Iterable[CountCell]) -> Sequence[CountCell]:
        return [cell for cell in cells if finding.touches(cell.place)]

    # Series are known by the minute, versions and sources by the hour.
    all_calls = (cell.place for cell in cells if cell.place.series in touched)
    is_all = finding.cause is Cause.MIXED or all(map(finding.touches, all_calls))
    calls_before = [] if is_all else of_cause(before)
    sources = {cell.place.source for cell in of_cause(cells)}
    of_sources = (cell for cell in cells if cell.place.source in sources)
    if finding.is_new:
        # It is compared with the other calls of its sources.
        earlier = counts.cells(since.at - WEEK, floor(since.at, HOUR))
        series_before = (cell for cell in earlier if cell.place.series in touched)
        calls_before = [cell for cell in series_before if cell.place.source in sources]
    return Diagnosis(
        finding,
        since=since.at,
        since_low=since.low,
        since_high=since.high,
        touched=touched,
        hit=of_series(since.at, until) if is_all else of_cause(counts.cells_since(since.at, until)),
        before=calls_before or of_series(since.low - WEEK, since.low),
        tells_ends=any(cell.degraded or cell.repaired for cell in of_sources),
        shifted=finding.cause is Cause.NOT_ENOUGH_DATA and is_shifted(cells, before),
    )


def _since(
    counts: VerdictCounts, finding: Finding, onset: SeriesOnset, onsets: Onsets
) -> SeriesOnset:
    """Return the onset; of a version that began with it, its first call."""
    if finding.is_new:
        timing = _timing(counts, onset, onsets)
        first = timing.first_call(finding.touches)
        if first is not None and timing.around(first):
            return SeriesOnset(first, min(first, onset.low), max(first, onset.high))
    return onset


def _series_hit(
    cells: Sequence[CountCell], before: Sequence[CountCell], finding: Finding, onsets: Onsets
) -> frozenset[SeriesKey]:
    """Return the series of the touched calls; without a cause those that are known to degrade.

    A model that answers where another one failed has calls in the same runs, but none that fail.
    """
    touched = frozenset(cell.place.series for cell in cells if finding.touches(cell.place))
    if finding.cause is not Cause.MIXED:
        return touched
    if degrading := touched.intersection(onsets):
        return degrading
    baseline, excess = CellBaseline.of(before), defaultdict[SeriesKey, float](float)
    for cell in cells:
        expected = cell.attempts * baseline.rate(cell.place, FAILURE_KINDS).mean
        excess[cell.place.series] += cell.failed - expected
    return frozenset(series for series in touched if excess[series] > 0) or touched


def _timing(counts: VerdictCounts, onset: SeriesOnset, onsets: Onsets) -> Timing:
    others = [(one.low, one.high) for one in onsets.values() if one is not onset]
    since = min([onset.low, *(low for low, _ in others)]) - AROUND
    until = max([onset.high, *(high for _, high in others)]) + AROUND
    until = min(until, counts.stretch.window.until)
    return Timing(
        onset.low, onset.high, counts.begun(since, until), counts.deploys(since, until), others
    )


def _calm_diagnosis(curves: Curves, over: Over | None, *, is_well: bool) -> Diagnosis:
    # Senders of failures alone tell nothing of what goes well.
    well = {series: curve for series, curve in curves.items() if curve.has_success}
    calls = sum(sum(curve.calls) for curve in well.values())
    unrated = sum(sum(curve.calls) for curve in curves.values()) - calls
    models = len({(series.provider, series.model) for series in well})
    enough = calls >= LEAST_CALLS and is_well
    cause = None if enough else Cause.NOT_ENOUGH_DATA
    return Diagnosis(Finding(cause), calls, models, unrated, over=over)
