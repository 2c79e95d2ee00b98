"""The judgement of a stretch of time, from counts alone.

1. Failing calls of every series, and of series added up, slot by slot, against the week
   before: what rose beyond chance is suspicious, and the strongest says since when.
2. All cells since then, by versions, against the week before then: `find_cause`.
3. The onset once more, from the series that the cause touches; a new version that is to
   blame says it to the second.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from diagnostics.analysis.onset import (
    LEAST_FACTOR,
    LEAST_MORE,
    OnsetSlots,
    alarm_of,
    find_onset,
    is_much,
)
from diagnostics.analysis.series import SeriesKey
from diagnostics.store.rollups import FAILURE_KINDS
from diagnostics.store.windows import WIDTHS, Grain, align_to, floor
from diagnostics.verdict.cause import LEAST_CALLS, Finding, find_cause
from diagnostics.verdict.cells import TRANSPORT, CountCell, Dimensions, told_whole
from diagnostics.verdict.curves import (
    Curves,
    SeriesBaseline,
    Stretch,
    VerdictRange,
    closer_look,
    slots_of,
    stretch_of,
)
from diagnostics.verdict.novelty import FirstSeen, ReportedDeploy, Timing
from diagnostics.verdict.suspects import Cause

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


def find_fired(curves: Curves, usual: SeriesBaseline) -> list[Worsening]:
    """Return every pool of series that got worse, also those where it is over by now."""
    pools = list(_pools(curves))
    slots = max((len(curve.calls) for curve in curves.values()), default=1)
    least = alarm_of(slots, len(pools) * len(KIND_SETS))
    return [
        Worsening(pool, kinds, onset)
        for pool in pools
        for kinds in KIND_SETS
        if (onset := joint(pool, kinds, curves, usual, least)) and onset.is_marked
    ]


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
    slots = slots_of(one.whos, one.kinds, curves, usual)[end:]
    failed = sum(slot.failed for slot in slots)
    expected = sum(slot.expected for slot in slots)
    return failed - expected >= LEAST_MORE and failed >= LEAST_FACTOR * expected


def joint(
    whos: Iterable[SeriesKey],
    kinds: Sequence[str],
    curves: Curves,
    usual: SeriesBaseline,
    least: float = 0.0,
) -> OnsetSlots | None:
    """Find since when some series together show more of some kinds, by that gain at least."""
    members = [who for who in whos if who in curves]
    if not _is_worth_it(members, kinds, curves, usual):
        return None
    slots = slots_of(members, kinds, curves, usual)
    onset = find_onset(slots, usual.calls(members), least)
    return onset if onset and is_much(onset, slots) else None


def _is_worth_it(
    members: Sequence[SeriesKey], kinds: Sequence[str], curves: Curves, usual: SeriesBaseline
) -> bool:
    """Whether any stretch of these can hold enough: most pools and kinds show nothing."""
    failed = sum(
        sum(curves[who].failed[kind])
        for who in members
        for kind in kinds
        if kind in curves[who].failed
    )
    if failed < LEAST_MORE or len(kinds) > 1:
        return failed >= LEAST_MORE
    expected = sum(sum(curves[who].calls) * usual.share(who, kinds[0]) for who in members)
    return failed >= expected


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
LATELY = (timedelta(hours=1), timedelta(hours=3))
SURELY_CALLED = 5.0
"""Calls of a version to be expected, of which none says that it is called no more."""
UNCLEAR = (None, Cause.MIXED, Cause.NOT_ENOUGH_DATA)
AROUND = timedelta(hours=6)
"""How far from the onset a version may begin: at first few calls may have it."""


Touches = Callable[[Dimensions], bool]
HOUR = WIDTHS[Grain.HOUR]


class VerdictCounts(Protocol):
    """What was counted of the calls that are asked about."""

    @property
    def stretch(self) -> Stretch:
        """Return the slots that are looked at."""

    def curves(self, stretch: Stretch, without: Touches | None = None) -> Curves:
        """Return the calls and failures of every series in each slot of a stretch.

        Without those that are touched, slots are hours at least.
        """

    def usual(self) -> SeriesBaseline:
        """Return what is known of each series from the week before the stretch."""

    def cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return what was counted of every place in whole hours between two times."""

    def begun(self, since: datetime, until: datetime, early: datetime) -> Sequence[FirstSeen]:
        """Return the first call of each version between two times; count those before `early`."""

    def told(self, since: datetime, until: datetime) -> Sequence[ReportedDeploy]:
        """Return the deploys between two times."""


@dataclass(frozen=True, slots=True)
class OtherCalls:
    """What was counted of the calls that a cause does not touch."""

    counts: VerdictCounts
    touches: Touches

    @property
    def stretch(self) -> Stretch:
        """Return the slots that are looked at: of an hour at least, as versions are known so."""
        stretch = self.counts.stretch
        if stretch.width >= HOUR:
            return stretch
        return Stretch(align_to(Grain.HOUR, stretch.window.since, stretch.window.until), HOUR)

    def curves(self, stretch: Stretch, without: Touches | None = None) -> Curves:
        """Return the calls and failures of every series in each slot of a stretch."""
        mine = self.touches
        if without is None:
            return self.counts.curves(stretch, mine)
        return self.counts.curves(stretch, lambda place: mine(place) or without(place))

    def usual(self) -> SeriesBaseline:
        """Return what is known of each series from the week before the stretch."""
        return self.counts.usual()

    def cells(self, since: datetime, until: datetime) -> Sequence[CountCell]:
        """Return what was counted of every place in whole hours between two times."""
        return [cell for cell in self.counts.cells(since, until) if not self.touches(cell.place)]

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


def judge_asked(
    asked: VerdictRange, count: Callable[[Stretch], VerdictCounts]
) -> Sequence[Diagnosis]:
    """Judge what is asked about; look once more where another stretch tells more.

    There is one diagnosis of each cause, the gravest first; one in all where nothing is worse.
    """
    stretch = stretch_of(asked)
    judged = judge(count(stretch))
    closer = closer_look(asked, stretch, judged[0].since_low)
    if not closer:
        return judged
    again = judge(count(closer))
    return again if again[0].since else judged


def judge(counts: VerdictCounts) -> Sequence[Diagnosis]:
    """Judge what was counted; the same counts give the same judgement."""
    first = _judge_one(counts)
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
    second = _judge_one(OtherCalls(counts, first.finding.touches))
    if second.since is None or second.finding.cause is Cause.NOT_ENOUGH_DATA:
        return [first]
    # Without the second the first may show since when it lasts.
    again = _judge_one(OtherCalls(counts, second.finding.touches))
    is_same = again.finding.cause is first.finding.cause and (
        again.finding.value == first.finding.value
    )
    rest = OtherCalls(counts, first.finding.touches)
    return [again if is_same else first, *_all_causes(rest, second, most - 1)]


def _told_apart(counts: VerdictCounts, mixed: Diagnosis) -> list[Diagnosis]:
    parts = mixed.finding.suspects
    if len(parts) < 2:
        return []
    found = [_judge_one(OtherCalls(counts, part.touches)) for part in parts]
    clear = [one for one in found if one.since and one.finding.cause not in UNCLEAR]
    named = {(one.finding.cause, one.finding.value) for one in clear}
    # The same calls that fail in the same way are one trouble, whatever they have in common.
    alike = {(one.touched, one.finding.top_kind) for one in clear}
    return clear if len(named) == len(alike) == len(parts) else []


def _judge_one(counts: VerdictCounts) -> Diagnosis:
    """Judge the strongest worsening."""
    stretch = counts.stretch
    curves, usual = counts.curves(stretch), counts.usual()
    fired = find_fired(curves, usual)
    lasting = lasting_of(fired, curves, usual)
    if not lasting:
        return _calm(curves, _ended(fired, stretch))
    strongest = max(lasting, key=lambda one: one.onset.gain)
    look = _look_around(counts, strongest, curves, usual)
    hour = floor(look.stretch.begin(look.onset.at), WIDTHS[Grain.HOUR])
    cells, before = told_whole(
        counts.cells(hour, stretch.window.until), counts.cells(hour - WEEK, hour)
    )
    timing = _timing(counts, look)
    finding = find_cause(cells, before, timing)
    if finding.cause is None:
        return _calm(curves, None, shifted=True)
    if finding.is_new and _is_called_no_more(counts, finding, cells):
        return _judge_one(OtherCalls(counts, finding.touches))
    hit = [cell for cell in cells if finding.touches(cell.place)]
    touched = frozenset(cell.place.who for cell in hit)
    sharpest = _sharpest(touched, finding, look.curves, usual)
    look = replace(look, onset=sharpest or look.onset)
    return _degrading(counts, finding, look, (hit, before), touched)


def _is_called_no_more(counts: VerdictCounts, finding: Finding, cells: Sequence[CountCell]) -> bool:
    """Whether the latest hours hold calls, and none of what is blamed: it was taken back."""
    until = counts.stretch.window.until
    calls = sum(cell.attempts for cell in cells)
    share = sum(cell.attempts for cell in cells if finding.touches(cell.place)) / calls
    for hours in LATELY:
        late = counts.cells(floor(until - hours, HOUR), until)
        if any(finding.touches(cell.place) for cell in late):
            return False
        if share * sum(cell.attempts for cell in late) >= SURELY_CALLED:
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
    curves: Curves, over: tuple[datetime, datetime] | None, *, shifted: bool = False
) -> Diagnosis:
    calls = sum(sum(curve.calls) for curve in curves.values())
    models = len({(who.provider, who.model) for who in curves})
    enough = calls >= LEAST_CALLS
    return Diagnosis(
        Finding(None if enough else Cause.NOT_ENOUGH_DATA),
        calls,
        models,
        over=over,
        shifted=shifted,
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
