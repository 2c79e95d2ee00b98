"""The judgement of a stretch of time, from counts alone.

1. Failing calls of every series, and of pooled series, slot by slot, against the week before:
   a rise beyond chance is suspicious, and the strongest one gives the onset.
2. All cells since then, by version, against the week before: `find_cause`.
3. The onset again, from the series that the cause touches; a new version that is the cause
   gives it to the second.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import log
from typing import Protocol

from diagnostics.analysis.onset import (
    LEAST_FACTOR,
    LEAST_MORE,
    OnsetSlots,
    RisingShare,
    alarm_of,
    find_onset,
    find_rise,
    is_much,
)
from diagnostics.analysis.series import SeriesKey
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.store.windows import WIDTHS, Grain, floor
from diagnostics.verdict.cause import LEAST_CALLS, Cause, Finding
from diagnostics.verdict.cells import TRANSPORT, CountCell, without_failure_only
from diagnostics.verdict.curves import (
    Curves,
    PooledCurves,
    SeriesBaseline,
    Stretch,
    VerdictRange,
    closer_look,
    stretch_of,
)
from diagnostics.verdict.findings import find_causes, is_shifted
from diagnostics.verdict.novelty import FirstSeen, ReportedDeploy, Timing
from diagnostics.verdict.rates import CellBaseline, noise_of_hours

POOLS: Sequence[Callable[[SeriesKey], object]] = (
    lambda series: series,
    lambda series: (series.provider, series.model),
    lambda series: series.provider,
    lambda series: series.node,
    lambda series: series.environment,
    lambda _: None,
)
SILENT = tuple(sorted(TRANSPORT))
KIND_SETS: Sequence[tuple[str, ...]] = (FAILURE_KINDS, SILENT, *((kind,) for kind in FAILURE_KINDS))


@dataclass(frozen=True, slots=True)
class Worsening:
    """Series that together got worse beyond chance: the kinds of failure and the onset."""

    series: frozenset[SeriesKey]
    kinds: tuple[str, ...]
    onset: OnsetSlots


def search_curves(curves: Curves, baseline: SeriesBaseline) -> list[Worsening]:
    """Return the worsenings in every pool of series and every kind, the ended ones too."""
    pools = list(_pools(curves))
    slots = max((len(curve.calls) for curve in curves.values()), default=1)
    least = alarm_of(slots, len(pools) * len(KIND_SETS))
    return [
        worsening
        for pool in pools
        for worsening in _fired(pool, PooledCurves(pool, curves, baseline), KIND_SETS, least)
    ]


def _fired(
    pool: frozenset[SeriesKey],
    pooled: PooledCurves,
    kind_sets: Iterable[tuple[str, ...]],
    least: float,
) -> Iterator[Worsening]:
    for kinds in kind_sets:
        slots = pooled.marked_slots(kinds)
        onset = find_onset(slots, pooled.known, least) if slots else None
        if onset and onset.is_marked and is_much(onset, slots):
            yield Worsening(pool, kinds, onset)


def ongoing_of(
    fired: Sequence[Worsening], curves: Curves, baseline: SeriesBaseline
) -> list[Worsening]:
    """Return the ongoing worsenings, even if a stronger one of the same calls has ended.

    Few calls cannot show an end by themselves; a worsening behind one that has ended must
    be visible after it, too.
    """
    return [
        worsening
        for worsening in fired
        if worsening.onset.over_at is None
        and _is_seen_after(worsening, _end_of_stronger(worsening, fired), curves, baseline)
    ]


def _end_of_stronger(worsening: Worsening, fired: Iterable[Worsening]) -> int | None:
    ends = [
        end
        for other in fired
        if (end := other.onset.over_at) is not None
        and other.onset.gain > worsening.onset.gain
        and worsening.onset.at < end
        and other.series & worsening.series
        and set(other.kinds) & set(worsening.kinds)
    ]
    return max(ends, default=None)


def _is_seen_after(
    worsening: Worsening, end: int | None, curves: Curves, baseline: SeriesBaseline
) -> bool:
    if end is None:
        return True
    slots = PooledCurves(worsening.series, curves, baseline).slots(worsening.kinds)[end:]
    failed = sum(slot.failed for slot in slots)
    expected = sum(slot.expected for slot in slots)
    return failed - expected >= LEAST_MORE and failed >= LEAST_FACTOR * expected


def joint_onset(
    group: Iterable[SeriesKey], kinds: Sequence[str], curves: Curves, baseline: SeriesBaseline
) -> OnsetSlots | None:
    """Return the onset of some kinds in some series together."""
    pooled = PooledCurves(group, curves, baseline)
    slots = pooled.slots(kinds)
    onset = find_onset(slots, pooled.known)
    return onset if onset and is_much(onset, slots) else None


def _pools(curves: Curves) -> Iterator[frozenset[SeriesKey]]:
    yielded: set[frozenset[SeriesKey]] = set()
    for key in POOLS:
        parts: dict[object, set[SeriesKey]] = defaultdict(set)
        for series in curves:
            parts[key(series)].add(series)
        for part in map(frozenset, parts.values()):
            if part not in yielded:
                yielded.add(part)
                yield part


WEEK = timedelta(days=7)
LATELY = tuple(timedelta(hours=hours) for hours in (1, 2, 3))
SURELY_NO_MORE = 5.0
"""How unlikely (log) it must be that all latest calls of a source were without a version."""
HIGHEST_PART = 0.95
"""The largest share of a source's calls that a version is assumed to have."""
AROUND = timedelta(hours=6)
"""How far from the onset a version may start: at first it may have few calls."""


HOUR = WIDTHS[Grain.HOUR]


class VerdictCounts(Protocol):
    """The counts of the calls in question."""

    @property
    def stretch(self) -> Stretch:
        """Return the slots of the judgement."""

    def curves(self, stretch: Stretch) -> Curves:
        """Return the calls and failures of every series in each slot of a stretch."""

    def baseline(self) -> SeriesBaseline:
        """Return what is known of each series from the week before the stretch."""

    def cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return what was counted of every place in whole hours between two times."""

    def series_cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return the counts of every series, to the minute where minutes are kept."""

    def begun(self, since: datetime, until: datetime, early: datetime) -> Sequence[FirstSeen]:
        """Return the first call of each version between two times; count those before `early`."""

    def deploys(self, since: datetime, until: datetime) -> Sequence[ReportedDeploy]:
        """Return the deploys between two times."""


@dataclass(frozen=True, slots=True)
class _LocatedOnset:
    """An onset in the stretch that shows it best."""

    stretch: Stretch
    curves: Curves
    onset: OnsetSlots


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of a judgement; times are None unless something is or was worse."""

    finding: Finding
    calls: int = 0
    models: int = 0
    since: datetime | None = None
    since_low: datetime | None = None
    since_high: datetime | None = None
    over: tuple[datetime, datetime] | None = None
    """The latest degradation of the stretch if it has ended."""
    touched: frozenset[SeriesKey] = frozenset()
    hit: Sequence[CountCell] = field(default=(), repr=False)
    before: Sequence[CountCell] = field(default=(), repr=False)
    shifted: bool = False
    """Whether the rate rose only because calls moved to series with higher baselines."""
    rise: RisingShare | None = None
    """How much it has worsened since the onset."""


def judge_range(
    requested: VerdictRange, count: Callable[[Stretch], VerdictCounts]
) -> Sequence[Diagnosis]:
    """Judge a range, again if another stretch shows more.

    Return a diagnosis of each cause, the largest first; a single one if nothing is worse.
    """
    stretch = stretch_of(requested)
    judged = judge(count(stretch))
    lows = [diagnosis.since_low for diagnosis in judged if diagnosis.since_low]
    closer = closer_look(requested, stretch, min(lows, default=None))
    if closer:
        again = judge(count(closer))
        if again[0].since:
            return again
    return judged


def judge(counts: VerdictCounts) -> Sequence[Diagnosis]:
    """Return a diagnosis of each cause, the largest first; the same counts give the same."""
    stretch = counts.stretch
    curves, baseline = counts.curves(stretch), counts.baseline()
    fired = search_curves(curves, baseline)
    ongoing = ongoing_of(fired, curves, baseline)
    if not ongoing:
        return [_calm_diagnosis(curves, _ended(fired, stretch))]
    strongest = max(ongoing, key=lambda worsening: worsening.onset.gain)
    located = _locate(counts, strongest, curves, baseline)
    cells, before = _around_onset(counts, ongoing, located)
    timing = _timing(counts, located, ongoing)
    noise = _noise_of(curves, stretch, located)
    findings = find_causes(cells, before, timing, noise)
    for finding in findings:
        if finding.is_new and _is_called_no_more(counts, finding, cells):
            cells = [cell for cell in cells if not finding.touches(cell.place)]
            findings = find_causes(cells, before, timing, noise)
            break
    if findings[0].cause in (None, Cause.NOT_ENOUGH_DATA):
        return [_calm_diagnosis(curves, None, shifted=is_shifted(cells, before))]
    diagnoses = [
        _diagnose(counts, finding, located, (cells, before), baseline) for finding in findings
    ]
    return sorted(diagnoses, key=lambda diagnosis: -diagnosis.finding.excess)


def _around_onset(
    counts: VerdictCounts, ongoing: Iterable[Worsening], located: _LocatedOnset
) -> tuple[list[CountCell], list[CountCell]]:
    """Return the cells since the onset, and of the week before anything got worse."""
    until = counts.stretch.window.until
    since = floor(located.stretch.begin(located.onset.at), HOUR)
    earliest = min(counts.stretch.begin(worsening.onset.low) for worsening in ongoing)
    healthy = min(since, floor(earliest, HOUR))
    return without_failure_only(counts.cells(since, until), counts.cells(healthy - WEEK, healthy))


def _noise_of(curves: Curves, stretch: Stretch, located: _LocatedOnset) -> float:
    """Return the squared variation of rates over a stretch as long as the one since the onset."""
    onset = located.stretch.begin(located.onset.low)
    slots = max(0, (onset - stretch.origin) // stretch.width)
    step = max(1, HOUR // stretch.width)
    hours = max((stretch.window.until - onset) / max(HOUR, stretch.width), 1.0)
    rows = []
    for curve in curves.values():
        failed = [sum(column) for column in zip(*curve.failed.values(), strict=True)]
        rows.append(
            [
                (sum(curve.calls[at : at + step]), sum(failed[at : at + step]))
                for at in range(0, slots - step + 1, step)
            ]
        )
    return noise_of_hours(rows) / hours


def _diagnose(
    counts: VerdictCounts,
    finding: Finding,
    located: _LocatedOnset,
    around: tuple[Sequence[CountCell], Sequence[CountCell]],
    baseline: SeriesBaseline,
) -> Diagnosis:
    cells, before = around
    touched = _series_hit(cells, before, finding)
    hit = [cell for cell in cells if cell.place.series in touched and finding.touches(cell.place)]
    sharpest = _sharpest(touched, finding, located.curves, baseline)
    located = replace(located, onset=sharpest or located.onset)
    diagnosis = _degrading(counts, finding, located, (hit, before), touched)
    return replace(
        diagnosis,
        hit=_hit_since(counts, diagnosis, cells),
        rise=_rise(touched, finding, located, baseline),
    )


def _series_hit(
    cells: Sequence[CountCell], before: Sequence[CountCell], finding: Finding
) -> frozenset[SeriesKey]:
    """Return the series of the touched calls; without a cause those that fail more than before.

    A model that answers where another one failed has calls in the same runs, but none that fail.
    """
    touched = frozenset(cell.place.series for cell in cells if finding.touches(cell.place))
    if finding.cause is not Cause.MIXED:
        return touched
    baseline, excess = CellBaseline.of(before), defaultdict[SeriesKey, float](float)
    for cell in cells:
        expected = cell.attempts * baseline.rate(cell.place, FAILURE_KINDS).mean
        excess[cell.place.series] += cell.failed - expected
    return frozenset(series for series in touched if excess[series] > 0) or touched


def _rise(
    touched: Iterable[SeriesKey], finding: Finding, located: _LocatedOnset, baseline: SeriesBaseline
) -> RisingShare | None:
    slots = PooledCurves(touched, located.curves, baseline).slots(finding.risen)
    return find_rise(slots[located.onset.at :], located.onset.spread)


def _hit_since(
    counts: VerdictCounts, diagnosis: Diagnosis, cells: Sequence[CountCell]
) -> Sequence[CountCell]:
    """Return the counts of the hit calls since the onset.

    Versions and sources are known by the hour; a new one has no calls before its first.
    """
    since, until = diagnosis.since or counts.stretch.window.since, counts.stretch.window.until
    touches, touched = diagnosis.finding.touches, diagnosis.touched
    if all(touches(cell.place) for cell in cells if cell.place.series in touched):
        return [cell for cell in counts.series_cells(since, until) if cell.place.series in touched]
    return [cell for cell in counts.cells(floor(since, HOUR), until) if touches(cell.place)]


def _is_called_no_more(counts: VerdictCounts, finding: Finding, cells: Sequence[CountCell]) -> bool:
    """Whether its sources kept calling without the blamed version: it was rolled back."""
    until = counts.stretch.window.until
    sources = {cell.place.source for cell in cells if finding.touches(cell.place)}
    calls = sum(cell.attempts for cell in cells if cell.place.source in sources)
    share = sum(cell.attempts for cell in cells if finding.touches(cell.place)) / calls
    unlikely = -log(1 - min(share, HIGHEST_PART))
    for hours in LATELY:
        recent = counts.cells(floor(until - hours, HOUR), until)
        if any(finding.touches(cell.place) for cell in recent):
            return False
        calls_made = sum(cell.attempts for cell in recent if cell.place.source in sources)
        if calls_made * unlikely >= SURELY_NO_MORE:
            return True
    return False


def _locate(
    counts: VerdictCounts, worsening: Worsening, curves: Curves, baseline: SeriesBaseline
) -> _LocatedOnset:
    """Return the onset by the hour if the slots are days."""
    located = _LocatedOnset(counts.stretch, curves, worsening.onset)
    hours = counts.stretch.around(worsening.onset.low, worsening.onset.high)
    if hours is None:
        return located
    closer = counts.curves(hours)
    onset = joint_onset(worsening.series, worsening.kinds, closer, baseline)
    return _LocatedOnset(hours, closer, onset) if onset and onset.over_at is None else located


def _sharpest(
    touched: frozenset[SeriesKey], finding: Finding, curves: Curves, baseline: SeriesBaseline
) -> OnsetSlots | None:
    """Return the onset in the hit series, by the risen kinds that show it most clearly."""
    has_cause = finding.cause is not Cause.MIXED
    kind_sets = (finding.risen[:1], finding.risen) if has_cause else (FAILURE_KINDS,)
    onsets = (joint_onset(touched, kinds, curves, baseline) for kinds in kind_sets)
    ongoing = [onset for onset in onsets if onset and onset.over_at is None]
    return max(ongoing, key=lambda onset: onset.gain, default=None)


def _timing(
    counts: VerdictCounts, located: _LocatedOnset, ongoing: Iterable[Worsening] = ()
) -> Timing:
    low, high = _interval(located.stretch, located.onset)
    others = [_interval(counts.stretch, worsening.onset) for worsening in ongoing]
    since = min([low, *(begin for begin, _ in others)]) - AROUND
    until = min(max([high, *(end for _, end in others)]) + AROUND, counts.stretch.window.until)
    begun = counts.begun(since, until, low)
    return Timing(low, high, begun, counts.deploys(since, until), others)


def _interval(stretch: Stretch, onset: OnsetSlots) -> tuple[datetime, datetime]:
    return stretch.begin(onset.earliest), stretch.end(onset.latest)


def _calm_diagnosis(
    curves: Curves, over: tuple[datetime, datetime] | None, *, shifted: bool = False
) -> Diagnosis:
    calls = sum(sum(curve.calls) for curve in curves.values())
    models = len({(series.provider, series.model) for series in curves})
    enough = calls >= LEAST_CALLS
    return Diagnosis(
        Finding(None if enough else Cause.NOT_ENOUGH_DATA),
        calls,
        models,
        over=over,
        shifted=shifted,
    )


def _ended(fired: Iterable[Worsening], stretch: Stretch) -> tuple[datetime, datetime] | None:
    over = [worsening.onset for worsening in fired if worsening.onset.over_at is not None]
    if not over:
        return None
    latest = max(over, key=lambda onset: onset.gain)
    return stretch.begin(latest.at), stretch.begin(latest.over_at or stretch.count)


def _degrading(
    counts: VerdictCounts,
    finding: Finding,
    located: _LocatedOnset,
    cells: tuple[Sequence[CountCell], Sequence[CountCell]],
    touched: frozenset[SeriesKey],
) -> Diagnosis:
    stretch, onset = located.stretch, located.onset
    since = stretch.begin(onset.at)
    # It may have begun after the last call of the previous slot.
    low = max(stretch.begin(onset.low) - stretch.width / 2, stretch.window.since)
    high = stretch.end(onset.high)
    if finding.is_new:
        timing = _timing(counts, located)
        first = timing.first_call(finding.touches)
        if first is not None and not timing.is_after(first):
            since, low, high = first, min(first, low), max(first, high)
    return Diagnosis(
        finding,
        since=since,
        since_low=low,
        since_high=high,
        touched=touched,
        hit=cells[0],
        before=cells[1],
    )
