"""Calls and failures of each series, slot by slot and by kind of failure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import repeat
from operator import mul

from diagnostics.analysis.onset import LEAST_MORE, Slot, may_be_marked
from diagnostics.analysis.series import SeriesKey
from diagnostics.store.windows import WIDTHS, Grain, TimeWindow, align, align_to, floor
from diagnostics.verdict.cells import CallTotals

DRAWN_TOWARDS = 20
"""Calls of the average series that every series' own are added to."""
USUAL_WHEN_NEW = 0.004
"""The share of each kind of failure where nothing is known."""
KNOWN_CALLS = 200
LEAST_USUAL = 0.001


@dataclass(slots=True)
class SeriesCurve:
    """Calls a slot, and failures a slot of each kind that was seen at all."""

    calls: list[int]
    failed: dict[str, list[int]] = field(default_factory=dict)

    def add(
        self, slot: int, calls: int, failures: Mapping[str, int], omitted: Collection[str] = ()
    ) -> None:
        """Count more calls in a slot, and their failures but for the kinds that are omitted."""
        self.calls[slot] += calls
        for kind, failed in failures.items():
            if failed and kind not in omitted:
                found = self.failed.get(kind)
                if found is None:
                    found = self.failed[kind] = [0] * len(self.calls)
                found[slot] += failed


Curves = Mapping[SeriesKey, SeriesCurve]


NOTHING = CallTotals(0, {})


@dataclass(frozen=True, slots=True)
class SeriesBaseline:
    """What is known of each series from the time before."""

    known: Mapping[SeriesKey, CallTotals]
    average: Mapping[str, float] | None = None
    """The share of each kind over all series; None where too little is known."""

    @classmethod
    def of(
        cls, known: Mapping[SeriesKey, CallTotals], settled: Collection[SeriesKey] | None = None
    ) -> "SeriesBaseline":
        """Learn the average share of each kind too.

        `settled` series were called before the last day already. What is as new as that
        may never have been well: it is measured by the others.
        """
        if settled and sum(known[who].calls for who in settled) >= KNOWN_CALLS:
            known = {who: known[who] for who in settled}
        calls = sum(one.calls for one in known.values())
        if calls < KNOWN_CALLS:
            return cls(known)
        kinds = {kind for one in known.values() for kind in one.failures}
        return cls(
            known,
            {
                kind: sum(one.failures.get(kind, 0) for one in known.values()) / calls
                for kind in kinds
            },
        )

    def share(self, who: SeriesKey, kind: str) -> float:
        """Return the expected share of a kind, drawn towards that of all series."""
        if self.average is None:
            average = USUAL_WHEN_NEW
        else:
            average = max(self.average.get(kind, 0.0), LEAST_USUAL)
        own = self.known.get(who, NOTHING)
        drawn = own.failures.get(kind, 0) + average * DRAWN_TOWARDS
        return max(drawn / (own.calls + DRAWN_TOWARDS), LEAST_USUAL)

    def calls(self, whos: Iterable[SeriesKey]) -> float:
        """Return the calls that the shares of these series rest on."""
        return sum(self.known.get(w, NOTHING).calls for w in whos) + DRAWN_TOWARDS


class PooledCurves:
    """The curves of some series added up, kind by kind: many thousand slots a judgement."""

    def __init__(self, whos: Iterable[SeriesKey], curves: Curves, usual: SeriesBaseline) -> None:
        """Add up the calls; failures are added up for the kinds that are asked for."""
        self._members = {who: curves[who] for who in whos if who in curves}
        self._usual = usual
        self._by_kind: dict[str, Sequence[int]] = {}
        self._calls = _add_up([curve.calls for curve in self._members.values()])

    @property
    def known(self) -> float:
        """The earlier calls that the usual failures rest on."""
        return self._usual.calls(self._members)

    def slots(self, kinds: Sequence[str]) -> list[Slot]:
        """Return calls, failures and the usual failures of each slot."""
        return self._slots(self._failed(kinds), self._shares(kinds))

    def marked_slots(self, kinds: Sequence[str]) -> list[Slot]:
        """Return the same, or nothing where no onset in them would be told."""
        failed = self._failed(kinds)
        if sum(failed) < LEAST_MORE:
            return []
        # Measured by the member that fails least: most pools and kinds need no more than this.
        shares = self._shares(kinds)
        expected = map(mul, reversed(self._calls), repeat(min(shares)))
        if not may_be_marked(zip(reversed(self._calls), reversed(failed), expected, strict=True)):
            return []
        slots = self._slots(failed, shares)
        return slots if len(shares) == 1 or may_be_marked(reversed(slots)) else []

    def _failed(self, kinds: Sequence[str]) -> Sequence[int]:
        return _add_up([row for kind in kinds if (row := self._failed_as(kind))])

    def _failed_as(self, kind: str) -> Sequence[int]:
        known = self._by_kind.get(kind)
        if known is None:
            rows = (curve.failed.get(kind) for curve in self._members.values())
            known = self._by_kind[kind] = _add_up([row for row in rows if row])
        return known

    def _shares(self, kinds: Sequence[str]) -> Sequence[float]:
        return [sum(self._usual.share(who, kind) for kind in kinds) for who in self._members]

    def _slots(self, failed: Sequence[int], shares: Sequence[float]) -> list[Slot]:
        by_slot = zip(*(curve.calls for curve in self._members.values()), strict=True)
        expected = [sum(map(mul, column, shares)) for column in by_slot]
        fewest = map(min, failed, self._calls) if failed else repeat(0)
        return list(map(Slot, self._calls, fewest, expected))


def _add_up(rows: Sequence[Sequence[int]]) -> Sequence[int]:
    return rows[0] if len(rows) == 1 else list(map(sum, zip(*rows, strict=True)))


SLOT = timedelta(minutes=10)
HOUR = WIDTHS[Grain.HOUR]
DAY = WIDTHS[Grain.DAY]
SHORTEST = timedelta(hours=24)
EARLY = 12
"""Slots at the begin of a stretch: an onset there may lie before it."""
MINUTES_REACH = timedelta(hours=47)
"""Minutes are kept for two days; an hour of reserve."""
HOURS_REACH = timedelta(days=8)
"""Beyond, slots are days (UTC): what they hide is looked at once more, by the hour."""
BEFORE, AFTER = timedelta(days=3), timedelta(days=4)
"""How much around the onset a closer look takes in."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The slots that are looked at: which time they cover and how wide they are."""

    window: TimeWindow
    width: timedelta

    @property
    def origin(self) -> datetime:
        """When the first slot begins; what lies before the window does not count."""
        return floor(self.window.since, self.width)

    @property
    def count(self) -> int:
        """How many there are."""
        return -(-(self.window.until - self.origin) // self.width)

    def begin(self, slot: int) -> datetime:
        """When a slot begins."""
        return max(self.origin + slot * self.width, self.window.since)

    def end(self, slot: int) -> datetime:
        """When a slot ends."""
        return self.origin + (slot + 1) * self.width

    def around(self, first: int, last: int) -> "Stretch | None":
        """Return the hours around the days between which an onset lies; None: nothing hides."""
        if self.width != DAY or last - first > HOURS_REACH // DAY:
            return None
        since = max(self.begin(first) - BEFORE, self.window.since)
        until = min(self.end(last) + AFTER, self.window.until)
        return Stretch(align_to(Grain.HOUR, since, until), HOUR)


@dataclass(frozen=True, slots=True)
class VerdictRange:
    """What is asked about; versions are known by the hour only."""

    since: datetime
    until: datetime
    now: datetime
    by_version: bool = False

    @property
    def _reach(self) -> datetime:
        return self.now - MINUTES_REACH


def stretch_of(asked: VerdictRange) -> Stretch:
    """Return slots of ten minutes for up to two days, of hours for a week, else of days."""
    since = min(asked.since, asked.until - SHORTEST)
    if since >= asked._reach and not asked.by_version:
        return Stretch(align_to(Grain.MINUTE, floor(since, SLOT), asked.until), SLOT)
    width = HOUR if asked.until - since <= HOURS_REACH else DAY
    return Stretch(align(since, asked.until, asked.now, Grain.HOUR), width)


def closer_look(asked: VerdictRange, used: Stretch, earliest: datetime | None) -> Stretch | None:
    """Return a stretch that tells more of an onset that was found; None: there is none.

    An onset near the begin of a stretch may lie before it; slots of an hour hide when in
    it; in days nothing is seen of what began today.
    """
    if earliest is None:
        late = replace(asked, since=asked.until - MINUTES_REACH)
        return stretch_of(late) if used.width == DAY else None
    longest = stretch_of(replace(asked, since=asked._reach, by_version=False))
    if asked.by_version or longest.width != SLOT or longest == used:
        return None
    is_first = earliest < used.begin(EARLY)
    if used.width == SLOT:
        return longest if is_first else None
    return longest if earliest >= longest.begin(0) else None
