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
"""The calls of the average series that are added to those of every series."""
USUAL_WHEN_NEW = 0.004
"""The share of each kind of failure if nothing is known."""
KNOWN_CALLS = 200
LEAST_USUAL = 0.001


@dataclass(slots=True)
class SeriesCurve:
    """Calls per slot, and failures per slot of each kind that occurred."""

    calls: list[int]
    failed: dict[str, list[int]] = field(default_factory=dict)

    def add(self, slot: int, calls: int, failures: Mapping[str, int]) -> None:
        """Add calls and their failures to a slot."""
        self.calls[slot] += calls
        for kind, failed in failures.items():
            if failed:
                slots = self.failed.get(kind)
                if slots is None:
                    slots = self.failed[kind] = [0] * len(self.calls)
                slots[slot] += failed


Curves = Mapping[SeriesKey, SeriesCurve]


NOTHING = CallTotals(0, {})


@dataclass(frozen=True, slots=True)
class SeriesBaseline:
    """The totals of each series before the onset."""

    known: Mapping[SeriesKey, CallTotals]
    average: Mapping[str, float] | None = None
    """The share of each kind over all series; None with too few calls."""

    @classmethod
    def of(
        cls, known: Mapping[SeriesKey, CallTotals], settled: Collection[SeriesKey] | None = None
    ) -> "SeriesBaseline":
        """Return the baseline with the average share of each kind.

        `settled` series were called before the last day already. Newer ones may never have been
        healthy, so they are compared with the settled ones.
        """
        if settled and sum(known[series].calls for series in settled) >= KNOWN_CALLS:
            known = {series: known[series] for series in settled}
        calls = sum(totals.calls for totals in known.values())
        if calls < KNOWN_CALLS:
            return cls(known)
        kinds = {kind for totals in known.values() for kind in totals.failures}
        return cls(
            known,
            {
                kind: sum(totals.failures.get(kind, 0) for totals in known.values()) / calls
                for kind in kinds
            },
        )

    def share(self, series: SeriesKey, kind: str) -> float:
        """Return the expected share of a kind, shrunk towards that of all series."""
        if self.average is None:
            average = USUAL_WHEN_NEW
        else:
            average = max(self.average.get(kind, 0.0), LEAST_USUAL)
        totals = self.known.get(series, NOTHING)
        weighted = totals.failures.get(kind, 0) + average * DRAWN_TOWARDS
        return max(weighted / (totals.calls + DRAWN_TOWARDS), LEAST_USUAL)

    def calls(self, members: Iterable[SeriesKey]) -> float:
        """Return the number of calls behind the shares of these series."""
        return sum(self.known.get(series, NOTHING).calls for series in members) + DRAWN_TOWARDS


class PooledCurves:
    """The summed curves of some series, kind by kind: many thousand slots per judgement."""

    def __init__(
        self, members: Iterable[SeriesKey], curves: Curves, baseline: SeriesBaseline
    ) -> None:
        """Sum the calls; failures are summed on demand, by kind."""
        self._members = {series: curves[series] for series in members if series in curves}
        self._baseline = baseline
        self._by_kind: dict[str, Sequence[int]] = {}
        self._calls = _add_up([curve.calls for curve in self._members.values()])

    @property
    def known(self) -> float:
        """The number of calls behind the baseline."""
        return self._baseline.calls(self._members)

    def slots(self, kinds: Sequence[str]) -> list[Slot]:
        """Return calls, failures and the usual failures of each slot."""
        return self._slots(self._failed(kinds), self._shares(kinds))

    def marked_slots(self, kinds: Sequence[str]) -> list[Slot]:
        """Return the slots, or none if they cannot contain an onset."""
        failed = self._failed(kinds)
        if sum(failed) < LEAST_MORE:
            return []
        # By the lowest baseline of a member: enough for most pools and kinds.
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
        return [
            sum(self._baseline.share(series, kind) for kind in kinds) for series in self._members
        ]

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
"""The first slots of a stretch, where an onset may be before it."""
MINUTES_REACH = timedelta(hours=47)
"""Minutes are kept for two days, less an hour of reserve."""
HOURS_REACH = timedelta(days=8)
"""Beyond, slots are days (UTC), and an onset is examined again by the hour."""
BEFORE, AFTER = timedelta(days=3), timedelta(days=4)
"""How much time around the onset a closer look includes."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The slots to examine: the time that they cover and their width."""

    window: TimeWindow
    width: timedelta

    @property
    def origin(self) -> datetime:
        """The start of the first slot; calls before the window do not count."""
        return floor(self.window.since, self.width)

    @property
    def count(self) -> int:
        """The number of slots."""
        return -(-(self.window.until - self.origin) // self.width)

    def begin(self, slot: int) -> datetime:
        """Return the start of a slot."""
        return max(self.origin + slot * self.width, self.window.since)

    def end(self, slot: int) -> datetime:
        """Return the end of a slot."""
        return self.origin + (slot + 1) * self.width

    def around(self, first: int, last: int) -> "Stretch | None":
        """Return the hours around an onset known by the day; None if that adds nothing."""
        if self.width != DAY or last - first > HOURS_REACH // DAY:
            return None
        since = max(self.begin(first) - BEFORE, self.window.since)
        until = min(self.end(last) + AFTER, self.window.until)
        return Stretch(align_to(Grain.HOUR, since, until), HOUR)


@dataclass(frozen=True, slots=True)
class VerdictRange:
    """The range of a verdict; versions are known by the hour only."""

    since: datetime
    until: datetime
    now: datetime
    by_version: bool = False

    @property
    def _reach(self) -> datetime:
        return self.now - MINUTES_REACH


def stretch_of(requested: VerdictRange) -> Stretch:
    """Return slots of ten minutes for up to two days, of hours for a week, else of days."""
    since = min(requested.since, requested.until - SHORTEST)
    if since >= requested._reach and not requested.by_version:
        return Stretch(align_to(Grain.MINUTE, floor(since, SLOT), requested.until), SLOT)
    width = HOUR if requested.until - since <= HOURS_REACH else DAY
    return Stretch(align(since, requested.until, requested.now, Grain.HOUR), width)


def closer_look(
    requested: VerdictRange, used: Stretch, earliest: datetime | None
) -> Stretch | None:
    """Return a stretch that shows more of an onset; None if there is none.

    An onset near the start of a stretch may lie before it. Slots of an hour hide the minute,
    and slots of a day hide an onset of today.
    """
    if earliest is None:
        late = replace(requested, since=requested.until - MINUTES_REACH)
        return stretch_of(late) if used.width == DAY else None
    longest = stretch_of(replace(requested, since=requested._reach, by_version=False))
    if requested.by_version or longest.width != SLOT or longest == used:
        return None
    is_first = earliest < used.begin(EARLY)
    if used.width == SLOT:
        return longest if is_first else None
    return longest if earliest >= longest.begin(0) else None
