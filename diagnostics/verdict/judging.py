"""The judgement of a stretch of time, from counts alone.

1. Failing calls of every series, and of pooled series, slot by slot, against the week before:
   a rise beyond chance is suspicious, and the strongest one gives the onset.
2. All cells since then, by version, against the week before: `find_cause`.
3. The onset again, from the series that the cause touches; a new version that is the cause
   gives it to the second.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
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
from diagnostics.store.windows import WIDTHS, Grain, align_to, floor
from diagnostics.verdict.cause import LEAST_CALLS, Finding, find_cause, is_seen
from diagnostics.verdict.cells import (
    TRANSPORT,
    CountCell,
    FailureBaseline,
    OmittedCalls,
    excess_of,
    leave_out,
    without_failure_only,
)
from diagnostics.verdict.curves import (
    Curves,
    PooledCurves,
    SeriesBaseline,
    Stretch,
    VerdictRange,
    closer_look,
    stretch_of,
)
from diagnostics.verdict.novelty import FirstSeen, ReportedDeploy, Timing
from diagnostics.verdict.suspects import Cause, Suspect

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


@dataclass(frozen=True, slots=True)
class CurveSearch:
    """The pools of series that were searched, and the worsenings found in them."""

    curves: Curves = field(default_factory=dict)
    least: float = 0.0
    fired: Mapping[frozenset[SeriesKey], Sequence[Worsening]] = field(default_factory=dict)
    """By pool, including those that have ended."""

    @property
    def all_fired(self) -> list[Worsening]:
        """The worsenings of all pools."""
        return list(chain.from_iterable(self.fired.values()))


def search_curves(
    curves: Curves,
    baseline: SeriesBaseline,
    extra_gain: float = 0.0,
    known: CurveSearch | None = None,
) -> CurveSearch:
    """Search for worsenings in every pool of series and every kind.

    `extra_gain` (log) is required beyond what chance explains. A pool with the same calls as in
    a `known` search is searched only for what was found there.
    """
    pools = list(_pools(curves))
    slots = max((len(curve.calls) for curve in curves.values()), default=1)
    least = alarm_of(slots, len(pools) * len(KIND_SETS)) + extra_gain
    if known is None or least < known.least:
        known = CurveSearch()
    unchanged = {series for series, curve in curves.items() if known.curves.get(series) == curve}
    fired = {}
    for pool in pools:
        is_known = pool in known.fired and pool <= unchanged
        kind_sets = [worsening.kinds for worsening in known.fired[pool]] if is_known else KIND_SETS
        fired[pool] = list(_fired(pool, PooledCurves(pool, curves, baseline), kind_sets, least))
    return CurveSearch(curves, least, fired)


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
MOST_CAUSES = 4
LATELY = tuple(timedelta(hours=hours) for hours in (1, 2, 3))
SURELY_NO_MORE = 5.0
"""How unlikely (log) it must be that all latest calls of a source were without a version."""
HIGHEST_PART = 0.95
"""The largest share of a source's calls that a version is assumed to have."""
BESIDE = 3.0
"""The gain beyond chance required beside another cause, since many remainders are searched."""
OF_SERIES = (Cause.PROVIDER_OUTAGE, Cause.MODEL, Cause.VALIDATOR)
"""Causes identified by the dimensions of a series: the remainder needs no versions."""
UNCLEAR = (None, Cause.MIXED, Cause.NOT_ENOUGH_DATA)
AROUND = timedelta(hours=6)
"""How far from the onset a version may start: at first it may have few calls."""


HOUR = WIDTHS[Grain.HOUR]


class VerdictCounts(Protocol):
    """The counts of the calls in question."""

    @property
    def stretch(self) -> Stretch:
        """Return the slots of the judgement."""

    def curves(self, stretch: Stretch, left_out: Sequence[OmittedCalls] = ()) -> Curves:
        """Return the calls and failures of every series in each slot of a stretch.

        Where versions say what is left out, slots are hours at least.
        """

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
class OtherCalls:
    """Counts without the calls of some causes."""

    counts: VerdictCounts
    left_out: tuple[OmittedCalls, ...]
    is_by_hour: bool = True
    """Whether slots are at least hours: versions are known by the hour, and fewer show more."""

    @property
    def stretch(self) -> Stretch:
        """Return the slots of the judgement."""
        stretch = self.counts.stretch
        if stretch.width >= HOUR or not self.is_by_hour:
            return stretch
        return Stretch(align_to(Grain.HOUR, stretch.window.since, stretch.window.until), HOUR)

    def curves(self, stretch: Stretch, left_out: Sequence[OmittedCalls] = ()) -> Curves:
        """Return the calls and failures of every series in each slot of a stretch."""
        return self.counts.curves(stretch, (*self.left_out, *left_out))

    def baseline(self) -> SeriesBaseline:
        """Return what is known of each series from the week before the stretch."""
        return self.counts.baseline()

    def cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return what was counted of every place in whole hours between two times."""
        cells = []
        for cell in self.counts.cells(since, until):
            calls, failures = leave_out(self.left_out, cell.place, cell.attempts, cell.failures)
            if calls:
                cells.append(replace(cell, attempts=calls, failures=failures))
        return cells

    def series_cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return the counts of every series, by the hour: what is left out is known by the hour."""
        return self.cells(floor(since, HOUR), until)

    def begun(self, since: datetime, until: datetime, early: datetime) -> Sequence[FirstSeen]:
        """Return the first call of each version between two times."""
        return self.counts.begun(since, until, early)

    def deploys(self, since: datetime, until: datetime) -> Sequence[ReportedDeploy]:
        """Return the deploys between two times."""
        return self.counts.deploys(since, until)


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
    search: CurveSearch = field(default_factory=CurveSearch, repr=False)
    """The search, which a search of the remainder starts from."""


def judge_range(
    requested: VerdictRange, count: Callable[[Stretch], VerdictCounts]
) -> Sequence[Diagnosis]:
    """Judge a range, again if another stretch shows more.

    Return a diagnosis of each cause, the largest first; a single one if nothing is worse.
    """
    stretch = stretch_of(requested)
    counts = count(stretch)
    first = _judge_strongest(counts)
    closer = closer_look(requested, stretch, first.since_low)
    if closer:
        again = judge(count(closer))
        if again[0].since:
            return again
    return _ranked_causes(counts, first)


def judge(counts: VerdictCounts) -> Sequence[Diagnosis]:
    """Return the diagnoses of some counts; the same counts give the same result."""
    return _ranked_causes(counts, _judge_strongest(counts))


def _ranked_causes(counts: VerdictCounts, first: Diagnosis) -> Sequence[Diagnosis]:
    if first.since is None:
        return [first]
    causes = _all_causes(counts, first, MOST_CAUSES)
    return sorted(causes, key=lambda diagnosis: -diagnosis.finding.excess)


def _all_causes(counts: VerdictCounts, first: Diagnosis, limit: int) -> list[Diagnosis]:
    """Return the causes that remain once the calls of a cause are left out.

    If two causes explain it together, each is judged without the calls of the other; if that
    makes neither clear, they remain one mixed cause.
    """
    if limit <= 1 or first.finding.cause is Cause.NOT_ENOUGH_DATA:
        return [first]
    if first.finding.cause is Cause.MIXED:
        return _separated(counts, first) or [first]
    remainder, second = _judge_remainder(counts, first)
    if second.since is None or second.finding.cause is Cause.NOT_ENOUGH_DATA:
        return [first]
    if second.finding.cause is not Cause.MIXED:
        # Without the second cause the onset of the first may be clearer.
        _, again = _judge_remainder(counts, second)
        first = again if _is_same(again, first) else first
    return [first, *_all_causes(remainder, second, limit - 1)]


def _separated(counts: VerdictCounts, mixed: Diagnosis) -> list[Diagnosis]:
    """Return two causes, each judged without the other; none if that makes them no clearer."""
    for suspect in mixed.finding.suspects:
        _, second = _judge_remainder(counts, mixed, suspect)
        if not _is_clear(second):
            continue
        _, first = _judge_remainder(counts, second)
        # The same kind at the same calls, or with the same cause, is one degradation.
        is_alike = first.finding.top_kind == second.finding.top_kind and (
            first.touched == second.touched or first.finding.cause is second.finding.cause
        )
        if _is_clear(first) and not is_alike and not _is_same(first, second):
            return [first, second]
    return []


def _judge_remainder(
    counts: VerdictCounts, diagnosis: Diagnosis, suspect: Suspect | None = None
) -> tuple[VerdictCounts, Diagnosis]:
    """Return the counts beside a cause, and their diagnosis.

    An outage leaves the calls that were answered. For any other cause all its calls are left
    out. If the remaining calls show nothing clearly, they are judged again with those of its
    calls that succeeded or failed in other ways.
    """
    suspect = suspect or diagnosis.finding.suspects[0]
    is_of_series = suspect.cause in OF_SERIES
    if suspect.cause is Cause.PROVIDER_OUTAGE:
        answered = OmittedCalls(suspect.touches, suspect.kinds, is_of_series)
        remainder = _without(counts, answered, is_by_hour=False)
        if _is_clear(further := _judge_strongest(remainder, diagnosis.search)):
            return remainder, further
    others = _without(counts, OmittedCalls(suspect.touches, is_of_series=is_of_series))
    second = _judge_strongest(others, diagnosis.search)
    if _is_clear(second):
        return others, second
    remainder = _without(counts, OmittedCalls(suspect.touches, suspect.kinds, is_of_series))
    further = _judge_strongest(remainder, diagnosis.search)
    if _is_clear(further) and _is_seen_in(others, further):
        return remainder, further
    return others, second


def _is_seen_in(counts: VerdictCounts, diagnosis: Diagnosis) -> bool:
    """Whether a diagnosis shows in some calls, even weakly."""
    since, until = diagnosis.since or counts.stretch.window.since, counts.stretch.window.until
    cells = counts.cells(floor(since, HOUR), until)
    return is_seen(cells, diagnosis.before, diagnosis.finding.suspects[0])


def _is_clear(diagnosis: Diagnosis) -> bool:
    return diagnosis.since is not None and diagnosis.finding.cause not in UNCLEAR


def _is_same(first: Diagnosis, second: Diagnosis) -> bool:
    return (first.finding.cause, first.finding.value) == (
        second.finding.cause,
        second.finding.value,
    )


def _without(
    counts: VerdictCounts, left_out: OmittedCalls, *, is_by_hour: bool = True
) -> VerdictCounts:
    if isinstance(counts, OtherCalls):
        is_by_hour = is_by_hour or counts.is_by_hour
        return OtherCalls(counts.counts, (*counts.left_out, left_out), is_by_hour)
    return OtherCalls(counts, (left_out,), is_by_hour)


def _judge_strongest(counts: VerdictCounts, known: CurveSearch | None = None) -> Diagnosis:
    """Return the diagnosis of the strongest worsening; beside another cause it must be clearer."""
    stretch = counts.stretch
    curves, baseline = counts.curves(stretch), counts.baseline()
    extra_gain = BESIDE if isinstance(counts, OtherCalls) else 0.0
    search = search_curves(curves, baseline, extra_gain, known)
    fired = search.all_fired
    ongoing = ongoing_of(fired, curves, baseline)
    if not ongoing:
        return _calm_diagnosis(search, _ended(fired, stretch))
    strongest = max(ongoing, key=lambda worsening: worsening.onset.gain)
    located = _locate(counts, strongest, curves, baseline)
    hour = floor(located.stretch.begin(located.onset.at), WIDTHS[Grain.HOUR])
    cells, before = without_failure_only(
        counts.cells(hour, stretch.window.until), counts.cells(hour - WEEK, hour)
    )
    timing = _timing(counts, located)
    finding = find_cause(cells, before, timing)
    if finding.cause is None:
        return _calm_diagnosis(search, None, shifted=True)
    if finding.is_new and _is_called_no_more(counts, finding, cells):
        return _judge_strongest(_without(counts, OmittedCalls(finding.touches)), search)
    touched = _series_hit(cells, before, finding)
    hit = [cell for cell in cells if cell.place.series in touched and finding.touches(cell.place)]
    sharpest = _sharpest(touched, finding, located.curves, baseline)
    located = replace(located, onset=sharpest or located.onset)
    diagnosis = _degrading(counts, finding, located, (hit, before), touched)
    return replace(
        diagnosis,
        hit=_hit_since(counts, diagnosis, cells),
        rise=_rise(touched, finding, located, baseline),
        search=search,
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
    baseline, excess = FailureBaseline.of(before), defaultdict[SeriesKey, float](float)
    for cell in cells:
        excess[cell.place.series] += sum(excess_of(cell, baseline).values())
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


def _timing(counts: VerdictCounts, located: _LocatedOnset) -> Timing:
    stretch, onset = located.stretch, located.onset
    low = stretch.begin(onset.earliest)
    high = stretch.end(onset.latest)
    since, until = low - AROUND, min(high + AROUND, stretch.window.until)
    begun = counts.begun(since, until, low)
    return Timing(low, high, begun, counts.deploys(since, until))


def _calm_diagnosis(
    search: CurveSearch, over: tuple[datetime, datetime] | None, *, shifted: bool = False
) -> Diagnosis:
    calls = sum(sum(curve.calls) for curve in search.curves.values())
    models = len({(series.provider, series.model) for series in search.curves})
    enough = calls >= LEAST_CALLS
    return Diagnosis(
        Finding(None if enough else Cause.NOT_ENOUGH_DATA),
        calls,
        models,
        over=over,
        shifted=shifted,
        search=search,
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
        if first is not None and (timing.is_near(first) or timing.is_before(first)):
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
