"""The judgement of a stretch of time, from counts alone.

1. Failing calls of every series, and of series added up, slot by slot, against the week
   before: what rose beyond chance is suspicious, and the strongest says since when.
2. All cells since then, by versions, against the week before then: `find_cause`.
3. The onset once more, from the series that the cause touches; a new version that is to
   blame says it to the second.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from diagnostics.core.onset import Onset
from diagnostics.core.rollups import FAILURE_KINDS
from diagnostics.core.verdict.cause import LEAST_CALLS, Finding, find_cause
from diagnostics.core.verdict.cells import Cell, Who
from diagnostics.core.verdict.curves import Curves, Usual
from diagnostics.core.verdict.novelty import Begun, Timing, Told
from diagnostics.core.verdict.pools import Fired, find_fired, joint, lasting_of
from diagnostics.core.verdict.stretches import Asked, Stretch, closer_look, stretch_of
from diagnostics.core.verdict.suspects import Cause
from diagnostics.core.windows import WIDTHS, Grain, floor

WEEK = timedelta(days=7)
AROUND = timedelta(hours=6)
"""How far from the onset a version may begin: at first few calls may have it."""


class Counts(Protocol):
    """What was counted of the calls that are asked about."""

    @property
    def stretch(self) -> Stretch:
        """Give the slots that are looked at."""

    def curves(self, stretch: Stretch) -> Curves:
        """Give every series its calls and failures in each slot of a stretch."""

    def usual(self) -> Usual:
        """Give what is known of each series from the week before the stretch."""

    def cells(self, since: datetime, until: datetime) -> Sequence[Cell]:
        """Give what was counted of every place in whole hours between two times."""

    def begun(self, since: datetime, until: datetime, early: datetime) -> Sequence[Begun]:
        """Give the first call of each version between two times; count those before `early`."""

    def told(self, since: datetime, until: datetime) -> Sequence[Told]:
        """Give the deploys between two times."""


@dataclass(frozen=True, slots=True)
class _Look:
    """An onset in the slots of the stretch in which it is best seen."""

    stretch: Stretch
    curves: Curves
    onset: Onset


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found; times are None unless something is worse, or was."""

    finding: Finding
    calls: int = 0
    series: int = 0
    models: int = 0
    since: datetime | None = None
    since_low: datetime | None = None
    since_high: datetime | None = None
    earliest: datetime | None = None
    """Before which it cannot have begun, by this stretch."""
    over: tuple[datetime, datetime] | None = None
    """The latest degradation of the stretch, when it has ended."""
    touched: frozenset[Who] = frozenset()
    hit: Sequence[Cell] = field(default=(), repr=False)
    before: Sequence[Cell] = field(default=(), repr=False)
    shifted: bool = False
    """Whether more fails only because calls went where more always failed."""


def judge_asked(asked: Asked, count: Callable[[Stretch], Counts]) -> Judged:
    """Judge what is asked about; look once more where another stretch tells more."""
    stretch = stretch_of(asked)
    judged = judge(count(stretch))
    closer = closer_look(asked, stretch, judged.earliest)
    if not closer:
        return judged
    again = judge(count(closer))
    return again if again.since else judged


def judge(counts: Counts) -> Judged:
    """Judge what was counted; the same counts give the same judgement."""
    stretch = counts.stretch
    curves, usual = counts.curves(stretch), counts.usual()
    fired = find_fired(curves, usual)
    lasting = lasting_of(fired, curves, usual)
    if not lasting:
        return _calm(curves, _ended(fired, stretch))
    strongest = max(lasting, key=lambda one: one.onset.gain)
    look = _look_around(counts, strongest, curves, usual)
    hour = floor(look.stretch.begin(look.onset.at), WIDTHS[Grain.HOUR])
    cells = counts.cells(hour, stretch.window.until)
    before = counts.cells(hour - WEEK, hour)
    timing = _timing(counts, look)
    finding = find_cause(cells, before, timing)
    if finding.cause is None:
        return _calm(curves, None, shifted=True)
    hit = [cell for cell in cells if finding.touches(cell.place)]
    touched = frozenset(cell.place.who for cell in hit)
    sharpest = _sharpest(touched, finding, look.curves, usual)
    look = replace(look, onset=sharpest or look.onset)
    return _degrading(counts, finding, look, (hit, before), touched)


def _look_around(counts: Counts, one: Fired, curves: Curves, usual: Usual) -> _Look:
    """Look once more by the hour, where the slots are days."""
    found = _Look(counts.stretch, curves, one.onset)
    hours = counts.stretch.around(one.onset.low, one.onset.high)
    if hours is None:
        return found
    closer = counts.curves(hours)
    onset = joint(one.whos, one.kinds, closer, usual)
    return _Look(hours, closer, onset) if onset and onset.over_at is None else found


def _sharpest(
    touched: frozenset[Who], finding: Finding, curves: Curves, usual: Usual
) -> Onset | None:
    """Ask the series that are hit once more: in the kinds that rose, whichever tell most."""
    is_one = finding.cause is not Cause.MIXED
    asked = (finding.risen[:1], finding.risen) if is_one else (FAILURE_KINDS,)
    found = (joint(touched, kinds, curves, usual) for kinds in asked)
    lasting = [one for one in found if one and one.over_at is None]
    return max(lasting, key=lambda one: one.gain, default=None)


def _timing(counts: Counts, look: _Look) -> Timing:
    stretch, onset = look.stretch, look.onset
    low = stretch.begin(onset.earliest)
    high = stretch.end(onset.latest)
    since, until = low - AROUND, min(high + AROUND, stretch.window.until)
    begun = counts.begun(since, until, low)
    return Timing(low, high, begun, counts.told(since, until))


def _calm(
    curves: Curves, over: tuple[datetime, datetime] | None, *, shifted: bool = False
) -> Judged:
    calls = sum(sum(curve.calls) for curve in curves.values())
    models = len({(who.provider, who.model) for who in curves})
    enough = calls >= LEAST_CALLS
    return Judged(
        Finding(None if enough else Cause.NOT_ENOUGH_DATA),
        calls,
        len(curves),
        models,
        over=over,
        shifted=shifted,
    )


def _ended(fired: Iterable[Fired], stretch: Stretch) -> tuple[datetime, datetime] | None:
    over = [one.onset for one in fired if one.onset.over_at is not None]
    if not over:
        return None
    latest = max(over, key=lambda onset: onset.gain)
    return stretch.begin(latest.at), stretch.begin(latest.over_at or stretch.count)


def _degrading(
    counts: Counts,
    finding: Finding,
    look: _Look,
    cells: tuple[Sequence[Cell], Sequence[Cell]],
    touched: frozenset[Who],
) -> Judged:
    stretch, onset = look.stretch, look.onset
    since, low = stretch.begin(onset.at), stretch.begin(onset.low)
    high = stretch.end(onset.high)
    if finding.is_new:
        timing = _timing(counts, look)
        first = timing.first_call(finding.touches)
        if first is not None and (timing.is_near(first) or timing.is_before(first)):
            since, low, high = first, min(first, low), max(first, high)
    return Judged(
        finding,
        since=since,
        since_low=low,
        since_high=high,
        earliest=stretch.begin(onset.earliest),
        touched=touched,
        hit=cells[0],
        before=cells[1],
    )
