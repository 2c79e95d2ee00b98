"""Whether a version began with a degradation: by its calls before it, and by the clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log

from diagnostics.verdict.cells import CountCell, Dimensions

HEALTHY_CALLS = 50
"""Calls before the onset that let a version off, unless they failed as well."""
FEW_CALLS = 15
"""Calls before the onset that are too few to let a version off that began before it."""
ACQUITTED = -3.0
CONVICTED = 2.0
"""Log likelihood ratios of its calls before: as bad as after, against as usual."""
AROUND = timedelta(minutes=15)
"""How far from the interval of the onset a version may begin and still be to blame."""
SHARP = timedelta(hours=2)
LOWEST, HIGHEST = 0.005, 0.98


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """The first call with a combination of versions that was not there the week before.

    `calls` and `failed` count those before the onset can have been.
    """

    place: Dimensions
    at: datetime
    calls: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class ReportedDeploy:
    """A deploy as it was told."""

    at: datetime
    kind: str
    version: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Between which times the onset lies, and what began or was told around then."""

    low: datetime | None = None
    high: datetime | None = None
    begun: Sequence[FirstSeen] = ()
    told: Sequence[ReportedDeploy] = ()

    def first_call(self, touches: Callable[[Dimensions], bool]) -> datetime | None:
        """Return the first call of a version that began around the onset, or None."""
        found = (one.at for one in self.begun if touches(one.place))
        return min(found, default=None)

    def is_near(self, at: datetime) -> bool:
        """Whether a time lies in the interval of the onset, or nearly."""
        if self.low is None or self.high is None:
            return True
        return self.low - AROUND <= at <= self.high + AROUND

    @property
    def is_sharp(self) -> bool:
        """Whether the onset is so well known that little is near it by chance."""
        if self.low is None or self.high is None:
            return False
        return self.high - self.low <= SHARP

    def early(self, touches: Callable[[Dimensions], bool]) -> tuple[int, int]:
        """Count the calls, and those that failed, of a version before the onset."""
        mine = [one for one in self.begun if touches(one.place)]
        return sum(one.calls for one in mine), sum(one.failed for one in mine)

    def is_after(self, at: datetime) -> bool:
        """Whether a time lies clearly after the onset."""
        return self.high is not None and at > self.high + AROUND

    def is_before(self, at: datetime) -> bool:
        """Whether a time lies clearly before the onset."""
        return self.low is not None and at < self.low - AROUND

    def told_kinds(self) -> set[str]:
        """Return the kinds of the deploys that were told around the onset."""
        return {one.kind for one in self.told if self.is_near(one.at)}


UNTIMED = Timing()


def is_new(
    touches: Callable[[Dimensions], bool],
    cells: Sequence[CountCell],
    before: Sequence[CountCell],
    timing: Timing,
) -> bool:
    """Whether a version can have brought the degradation, as far as time can tell.

    1. It was called the week before: no.
    2. It began clearly after the onset: no.
    3. It began about then: yes.
    4. It began clearly before: its first calls, counted once, say whether they failed as
       much already, so that the onset was a little earlier; few calls say nothing.
    """
    lately = {one.place for one in timing.begun}
    if any(touches(cell.place) and cell.place.versions not in lately for cell in before):
        return False
    begun = timing.first_call(touches)
    if begun is None:
        return True
    if timing.is_after(begun):
        return False
    if not timing.is_before(begun):
        return True
    calls, failed = timing.early(touches)
    bad = _rate(*_counted(touches, cells))
    usual = _usual(touches, before)
    if bad <= usual or not calls:
        return 0 < calls < FEW_CALLS
    good = calls - failed
    ratio = failed * log(bad / usual) + good * log((1 - bad) / (1 - usual))
    if ratio < ACQUITTED:
        return False
    return ratio > CONVICTED or calls < FEW_CALLS


def _counted(touches: Callable[[Dimensions], bool], cells: Sequence[CountCell]) -> tuple[int, int]:
    mine = [cell for cell in cells if touches(cell.place)]
    return sum(cell.attempts for cell in mine), sum(cell.failed for cell in mine)


def _usual(touches: Callable[[Dimensions], bool], before: Sequence[CountCell]) -> float:
    """Return the share of failures without a version; of everything where that is little."""
    calls, failed = _counted(lambda place: not touches(place), before)
    if calls >= HEALTHY_CALLS:
        return _rate(calls, failed)
    return _rate(*_counted(lambda _: True, before))


def _rate(calls: int, failed: int) -> float:
    return min(max(failed / calls if calls else LOWEST, LOWEST), HIGHEST)
