"""The judgement of a stretch of time, from counts alone.

1. Failing calls of every series, and of series added up, slot by slot, against the week
   before: what rose beyond chance is suspicious, and the strongest says since when.
2. All cells since then, by versions, against the week before then: `find_cause`.
3. The onset once more, from the series that the cause touches; a new version that is to
   blame says it to the second.
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
from diagnostics.verdict.cells import TRANSPORT, CountCell, OmittedCalls, leave_out, told_whole
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
    lambda who: who,
    lambda who: (who.provider, who.model),
    lambda who: who.provider,
    lambda who: who.node,
    lambda who: who.environment,
    lambda _: None,
)
SILENT = tuple(sorted(TRANSPORT))
KIND_SETS: Sequence[tuple[str, ...]] = (FAILURE_KINDS, SILENT, *((kind,) for kind in FAILURE_KINDS))


@dataclass(frozen=True, slots=True)
class Worsening:
    """Series that together got worse beyond chance, in which kinds, and since when."""

    whos: frozenset[SeriesKey]
    kinds: tuple[str, ...]
    onset: OnsetSlots


@dataclass(frozen=True, slots=True)
class CurveSearch:
    """The pools of series that were looked at, and every worsening that was found in them."""

    curves: Curves = field(default_factory=dict)
    least: float = 0.0
    fired: Mapping[frozenset[SeriesKey], Sequence[Worsening]] = field(default_factory=dict)
    """By pool, also where it is over by now."""

    @property
    def all_fired(self) -> list[Worsening]:
        """The worsenings of all pools."""
        return list(chain.from_iterable(self.fired.values()))


def search_curves(
    curves: Curves, usual: SeriesBaseline, more: float = 0.0, known: CurveSearch | None = None
) -> CurveSearch:
    """Look for what got worse in every pool of series and every kind.

    `more` is the gain (log) that is asked for beyond what chance explains. In a pool with the
    same calls as in a `known` search only what was found there is looked at once more.
    """
    pools = list(_pools(curves))
    slots = max((len(curve.calls) for curve in curves.values()), default=1)
    least = alarm_of(slots, len(pools) * len(KIND_SETS)) + more
    if known is None or least < known.least:
        known = CurveSearch()
    same = {who for who, curve in curves.items() if known.curves.get(who) == curve}
    fired = {}
    for pool in pools:
        is_known = pool in known.fired and pool <= same
        asked = [one.kinds for one in known.fired[pool]] if is_known else KIND_SETS
        fired[pool] = list(_fired(pool, PooledCurves(pool, curves, usual), asked, least))
    return CurveSearch(curves, least, fired)


def _fired(
    pool: frozenset[SeriesKey], pooled: PooledCurves, asked: Iterable[tuple[str, ...]], least: float
) -> Iterator[Worsening]:
    for kinds in asked:
        slots = pooled.marked_slots(kinds)
        onset = find_onset(slots, pooled.known, least) if slots else None
        if onset and onset.is_marked and is_much(onset, slots):
            yield Worsening(pool, kinds, onset)


def lasting_of(
    fired: Sequence[Worsening], curves: Curves, usual: SeriesBaseline
) -> list[Worsening]:
    """Keep what goes on: also where a stronger worsening of the same calls is over.

    Few calls cannot tell an end by themselves; what hides behind a trouble that has
    ended must be seen after it too.
    """
    return [
        one
        for one in fired
        if one.onset.over_at is None
        and _is_seen_after(one, _end_of_stronger(one, fired), curves, usual)
    ]


def _end_of_stronger(one: Worsening, fired: Iterable[Worsening]) -> int | None:
    ends = [
        end
        for other in fired
        if (end := other.onset.over_at) is not None
        and other.onset.gain > one.onset.gain
        and one.onset.at < end
        and other.whos & one.whos
        and set(other.kinds) & set(one.kinds)
    ]
    return max(ends, default=None)


def _is_seen_after(one: Worsening, end: int | None, curves: Curves, usual: SeriesBaseline) -> bool:
    if end is None:
        return True
    slots = PooledCurves(one.whos, curves, usual).slots(one.kinds)[end:]
    failed = sum(slot.failed for slot in slots)
    expected = sum(slot.expected for slot in slots)
    return failed - expected >= LEAST_MORE and failed >= LEAST_FACTOR * expected


def joint(
    whos: Iterable[SeriesKey], kinds: Sequence[str], curves: Curves, usual: SeriesBaseline
) -> OnsetSlots | None:
    """Find since when some series together show more of some kinds."""
    pooled = PooledCurves(whos, curves, usual)
    slots = pooled.slots(kinds)
    onset = find_onset(slots, pooled.known)
    return onset if onset and is_much(onset, slots) else None


def _pools(curves: Curves) -> Iterator[frozenset[SeriesKey]]:
    seen: set[frozenset[SeriesKey]] = set()
    for key in POOLS:
        parts: dict[object, set[SeriesKey]] = defaultdict(set)
        for who in curves:
            parts[key(who)].add(who)
        for part in map(frozenset, parts.values()):
            if part not in seen:
                seen.add(part)
                yield part


WEEK = timedelta(days=7)
MOST_CAUSES = 4
LATELY = tuple(timedelta(hours=hours) for hours in (1, 2, 3))
SURELY_NO_MORE = 5.0
"""How unlikely (log) it must be that a source made its latest calls all without a version."""
HIGHEST_PART = 0.95
"""Of a source's calls, what a version is taken to have at most."""
BESIDE = 3.0
"""The gain beyond chance of what is told beside another cause: one looks at many remainders."""
OF_SERIES = (Cause.PROVIDER_OUTAGE, Cause.MODEL, Cause.VALIDATOR)
"""Causes whose calls a series names: what is left needs no count by versions."""
UNCLEAR = (None, Cause.MIXED, Cause.NOT_ENOUGH_DATA)
AROUND = timedelta(hours=6)
"""How far from the onset a version may begin: at first few calls may have it."""


HOUR = WIDTHS[Grain.HOUR]


class VerdictCounts(Protocol):
    """What was counted of the calls that are asked about."""

    @property
    def stretch(self) -> Stretch:
        """Return the slots that are looked at."""

    def curves(self, stretch: Stretch, left_out: Sequence[OmittedCalls] = ()) -> Curves:
        """Return the calls and failures of every series in each slot of a stretch.

        Where versions say what is left out, slots are hours at least.
        """

    def usual(self) -> SeriesBaseline:
        """Return what is known of each series from the week before the stretch."""

    def cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return what was counted of every place in whole hours between two times."""

    def series_cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return what was counted of every series, from the minute on where minutes are kept."""

    def begun(self, since: datetime, until: datetime, early: datetime) -> Sequence[FirstSeen]:
        """Return the first call of each version between two times; count those before `early`."""

    def told(self, since: datetime, until: datetime) -> Sequence[ReportedDeploy]:
        """Return the deploys between two times."""


@dataclass(frozen=True, slots=True)
class OtherCalls:
    """What was counted beside the calls of some causes."""

    counts: VerdictCounts
    left_out: tuple[OmittedCalls, ...]
    is_by_hour: bool = True
    """Whether slots are hours at least: fewer slots show more, and versions are known by them."""

    @property
    def stretch(self) -> Stretch:
        """Return the slots that are looked at."""
        stretch = self.counts.stretch
        if stretch.width >= HOUR or not self.is_by_hour:
            return stretch
        return Stretch(align_to(Grain.HOUR, stretch.window.since, stretch.window.until), HOUR)

    def curves(self, stretch: Stretch, left_out: Sequence[OmittedCalls] = ()) -> Curves:
        """Return the calls and failures of every series in each slot of a stretch."""
        return self.counts.curves(stretch, (*self.left_out, *left_out))

    def usual(self) -> SeriesBaseline:
        """Return what is known of each series from the week before the stretch."""
        return self.counts.usual()

    def cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return what was counted of every place in whole hours between two times."""
        found = []
        for cell in self.counts.cells(since, until):
            calls, failures = leave_out(self.left_out, cell.place, cell.attempts, cell.failures)
            if calls:
                found.append(replace(cell, attempts=calls, failures=failures))
        return found

    def series_cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return the same of every series: what is left out of it is known by the hour."""
        return self.cells(floor(since, HOUR), until)

    def begun(self, since: datetime, until: datetime, early: datetime) -> Sequence[FirstSeen]:
        """Return the first call of each version between two times."""
        return self.counts.begun(since, until, early)

    def told(self, since: datetime, until: datetime) -> Sequence[ReportedDeploy]:
        """Return the deploys between two times."""
        return self.counts.told(since, until)


@dataclass(frozen=True, slots=True)
class _Look:
    """An onset in the slots of the stretch in which it is best seen."""

    stretch: Stretch
    curves: Curves
    onset: OnsetSlots


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found; times are None unless something is worse, or was."""

    finding: Finding
    calls: int = 0
    models: int = 0
    since: datetime | None = None
    since_low: datetime | None = None
    since_high: datetime | None = None
    over: tuple[datetime, datetime] | None = None
    """The latest degradation of the stretch, when it has ended."""
    touched: frozenset[SeriesKey] = frozenset()
    hit: Sequence[CountCell] = field(default=(), repr=False)
    before: Sequence[CountCell] = field(default=(), repr=False)
    shifted: bool = False
    """Whether more fails only because calls went where more always failed."""
    rise: RisingShare | None = None
    """How much it got worse since it began."""
    search: CurveSearch = field(default_factory=CurveSearch, repr=False)
    """What was looked at: a look at the rest begins with it."""


def judge_asked(
    asked: VerdictRange, count: Callable[[Stretch], VerdictCounts]
) -> Sequence[Diagnosis]:
    """Judge what is asked about; look once more where another stretch tells more.

    There is one diagnosis of each cause, the gravest first; one in all where nothing is worse.
    """
    stretch = stretch_of(asked)
    counts = count(stretch)
    first = _judge_one(counts)
    closer = closer_look(asked, stretch, first.since_low)
    if closer:
        again = judge(count(closer))
        if again[0].since:
            return again
    return _every_cause(counts, first)


def judge(counts: VerdictCounts) -> Sequence[Diagnosis]:
    """Judge what was counted; the same counts give the same judgement."""
    return _every_cause(counts, _judge_one(counts))


def _every_cause(counts: VerdictCounts, first: Diagnosis) -> Sequence[Diagnosis]:
    if first.since is None:
        return [first]
    causes = _all_causes(counts, first, MOST_CAUSES)
    return sorted(causes, key=lambda one: -one.finding.excess)


def _all_causes(counts: VerdictCounts, first: Diagnosis, most: int) -> list[Diagnosis]:
    """Return what else there is once the calls of a cause are left out.

    Where two causes explain it together, each is judged without the calls of the other;
    where that makes neither clear, they stay one that cannot be told apart.
    """
    if most <= 1 or first.finding.cause is Cause.NOT_ENOUGH_DATA:
        return [first]
    if first.finding.cause is Cause.MIXED:
        return _told_apart(counts, first) or [first]
    rest, second = _beside(counts, first)
    if second.since is None or second.finding.cause is Cause.NOT_ENOUGH_DATA:
        return [first]
    if second.finding.cause is not Cause.MIXED:
        # Without the second the first may show since when it lasts.
        _, again = _beside(counts, second)
        first = again if _is_same(again, first) else first
    return [first, *_all_causes(rest, second, most - 1)]


def _told_apart(counts: VerdictCounts, mixed: Diagnosis) -> list[Diagnosis]:
    """Return two causes, each as it is without the other; none where that makes them no clearer."""
    for suspect in mixed.finding.suspects:
        _, second = _beside(counts, mixed, suspect)
        if not _is_clear(second):
            continue
        _, first = _beside(counts, second)
        # What fails in the same way, at the same calls or at two of a kind, is one trouble.
        is_alike = first.finding.top_kind == second.finding.top_kind and (
            first.touched == second.touched or first.finding.cause is second.finding.cause
        )
        if _is_clear(first) and not is_alike and not _is_same(first, second):
            return [first, second]
    return []


def _beside(
    counts: VerdictCounts, one: Diagnosis, suspect: Suspect | None = None
) -> tuple[VerdictCounts, Diagnosis]:
    """Return what is left beside a cause, and what that shows.

    An outage leaves the calls that were answered. Of any other cause all calls are left out;
    where the others do not show something clearly, they may beside those of its calls that
    failed in other ways, or not at all.
    """
    suspect = suspect or one.finding.suspects[0]
    is_of_series = suspect.cause in OF_SERIES
    if suspect.cause is Cause.PROVIDER_OUTAGE:
        answered = OmittedCalls(suspect.touches, suspect.kinds, is_of_series)
        rest = _without(counts, answered, is_by_hour=False)
        if _is_clear(found := _judge_one(rest, one.search)):
            return rest, found
    others = _without(counts, OmittedCalls(suspect.touches, is_of_series=is_of_series))
    second = _judge_one(others, one.search)
    if _is_clear(second):
        return others, second
    rest = _without(counts, OmittedCalls(suspect.touches, suspect.kinds, is_of_series))
    found = _judge_one(rest, one.search)
    if _is_clear(found) and _is_seen_in(others, found):
        return rest, found
    return others, second


def _is_seen_in(counts: VerdictCounts, found: Diagnosis) -> bool:
    """Whether what was found shows in some calls, were it by less."""
    since, until = found.since or counts.stretch.window.since, counts.stretch.window.until
    cells = counts.cells(floor(since, HOUR), until)
    return is_seen(cells, found.before, found.finding.suspects[0])


def _is_clear(one: Diagnosis) -> bool:
    return one.since is not None and one.finding.cause not in UNCLEAR


def _is_same(one: Diagnosis, other: Diagnosis) -> bool:
    return (one.finding.cause, one.finding.value) == (other.finding.cause, other.finding.value)


def _without(
    counts: VerdictCounts, left_out: OmittedCalls, *, is_by_hour: bool = True
) -> VerdictCounts:
    if isinstance(counts, OtherCalls):
        is_by_hour = is_by_hour or counts.is_by_hour
        return OtherCalls(counts.counts, (*counts.left_out, left_out), is_by_hour)
    return OtherCalls(counts, (left_out,), is_by_hour)


def _judge_one(counts: VerdictCounts, known: CurveSearch | None = None) -> Diagnosis:
    """Judge the strongest worsening; beside another cause it has to be clearer."""
    stretch = counts.stretch
    curves, usual = counts.curves(stretch), counts.usual()
    more = BESIDE if isinstance(counts, OtherCalls) else 0.0
    search = search_curves(curves, usual, more, known)
    fired = search.all_fired
    lasting = lasting_of(fired, curves, usual)
    if not lasting:
        return _calm(search, _ended(fired, stretch))
    strongest = max(lasting, key=lambda one: one.onset.gain)
    look = _look_around(counts, strongest, curves, usual)
    hour = floor(look.stretch.begin(look.onset.at), WIDTHS[Grain.HOUR])
    cells, before = told_whole(
        counts.cells(hour, stretch.window.until), counts.cells(hour - WEEK, hour)
    )
    timing = _timing(counts, look)
    finding = find_cause(cells, before, timing)
    if finding.cause is None:
        return _calm(search, None, shifted=True)
    if finding.is_new and _is_called_no_more(counts, finding, cells):
        return _judge_one(_without(counts, OmittedCalls(finding.touches)), search)
    hit = [cell for cell in cells if finding.touches(cell.place)]
    touched = frozenset(cell.place.who for cell in hit)
    sharpest = _sharpest(touched, finding, look.curves, usual)
    look = replace(look, onset=sharpest or look.onset)
    found = _degrading(counts, finding, look, (hit, before), touched)
    return replace(
        found,
        hit=_hit_since(counts, found, cells),
        rise=_rise(touched, finding, look, usual),
        search=search,
    )


def _rise(
    touched: Iterable[SeriesKey], finding: Finding, look: _Look, usual: SeriesBaseline
) -> RisingShare | None:
    slots = PooledCurves(touched, look.curves, usual).slots(finding.risen)
    return find_rise(slots[look.onset.at :], look.onset.spread)


def _hit_since(
    counts: VerdictCounts, found: Diagnosis, cells: Sequence[CountCell]
) -> Sequence[CountCell]:
    """Return what was counted of what is hit since the onset.

    Versions and sources are known by the hour; one that is new has no calls before it.
    """
    since, until = found.since or counts.stretch.window.since, counts.stretch.window.until
    touches, touched = found.finding.touches, found.touched
    if all(touches(cell.place) for cell in cells if cell.place.who in touched):
        return [cell for cell in counts.series_cells(since, until) if cell.place.who in touched]
    return [cell for cell in counts.cells(floor(since, HOUR), until) if touches(cell.place)]


def _is_called_no_more(counts: VerdictCounts, finding: Finding, cells: Sequence[CountCell]) -> bool:
    """Whether its sources went on calling, and not what is blamed: it was taken back."""
    until = counts.stretch.window.until
    sources = {cell.place.source for cell in cells if finding.touches(cell.place)}
    calls = sum(cell.attempts for cell in cells if cell.place.source in sources)
    share = sum(cell.attempts for cell in cells if finding.touches(cell.place)) / calls
    unlikely = -log(1 - min(share, HIGHEST_PART))
    for hours in LATELY:
        late = counts.cells(floor(until - hours, HOUR), until)
        if any(finding.touches(cell.place) for cell in late):
            return False
        made = sum(cell.attempts for cell in late if cell.place.source in sources)
        if made * unlikely >= SURELY_NO_MORE:
            return True
    return False


def _look_around(
    counts: VerdictCounts, one: Worsening, curves: Curves, usual: SeriesBaseline
) -> _Look:
    """Look once more by the hour, where the slots are days."""
    found = _Look(counts.stretch, curves, one.onset)
    hours = counts.stretch.around(one.onset.low, one.onset.high)
    if hours is None:
        return found
    closer = counts.curves(hours)
    onset = joint(one.whos, one.kinds, closer, usual)
    return _Look(hours, closer, onset) if onset and onset.over_at is None else found


def _sharpest(
    touched: frozenset[SeriesKey], finding: Finding, curves: Curves, usual: SeriesBaseline
) -> OnsetSlots | None:
    """Ask the series that are hit once more: in the kinds that rose, whichever tell most."""
    is_one = finding.cause is not Cause.MIXED
    asked = (finding.risen[:1], finding.risen) if is_one else (FAILURE_KINDS,)
    found = (joint(touched, kinds, curves, usual) for kinds in asked)
    lasting = [one for one in found if one and one.over_at is None]
    return max(lasting, key=lambda one: one.gain, default=None)


def _timing(counts: VerdictCounts, look: _Look) -> Timing:
    stretch, onset = look.stretch, look.onset
    low = stretch.begin(onset.earliest)
    high = stretch.end(onset.latest)
    since, until = low - AROUND, min(high + AROUND, stretch.window.until)
    begun = counts.begun(since, until, low)
    return Timing(low, high, begun, counts.told(since, until))


def _calm(
    search: CurveSearch, over: tuple[datetime, datetime] | None, *, shifted: bool = False
) -> Diagnosis:
    calls = sum(sum(curve.calls) for curve in search.curves.values())
    models = len({(who.provider, who.model) for who in search.curves})
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
    over = [one.onset for one in fired if one.onset.over_at is not None]
    if not over:
        return None
    latest = max(over, key=lambda onset: onset.gain)
    return stretch.begin(latest.at), stretch.begin(latest.over_at or stretch.count)


def _degrading(
    counts: VerdictCounts,
    finding: Finding,
    look: _Look,
    cells: tuple[Sequence[CountCell], Sequence[CountCell]],
    touched: frozenset[SeriesKey],
) -> Diagnosis:
    stretch, onset = look.stretch, look.onset
    since = stretch.begin(onset.at)
    # It may have begun behind the last call of the slot before.
    low = max(stretch.begin(onset.low) - stretch.width / 2, stretch.window.since)
    high = stretch.end(onset.high)
    if finding.is_new:
        timing = _timing(counts, look)
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
