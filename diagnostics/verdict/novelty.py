"""Whether a version started with a degradation, by its earlier calls and by time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log

from diagnostics.verdict.cells import CountCell, Dimensions

HEALTHY_CALLS = 50
"""Calls before the onset that clear a version, unless they failed as well."""
FEW_CALLS = 15
"""Fewer calls before the onset cannot clear a version that started before it."""
ACQUITTED = -3.0
CONVICTED = 2.0
"""Log likelihood ratios of its earlier calls: as bad as later, against the baseline."""
AROUND = timedelta(minutes=15)
"""How far from the interval of the onset a version may start and still be the cause."""
SHARP = timedelta(hours=2)
LOWEST, HIGHEST = 0.005, 0.98


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """The first call with a combination of versions that was not there the week before.

    `calls` and `failed` count those before the earliest possible onset.
    """

    place: Dimensions
    at: datetime
    calls: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class ReportedDeploy:
    """A deploy as it was reported."""

    at: datetime
    kind: str
    version: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """The interval of the onset, and the versions and deploys around it."""

    low: datetime | None = None
    high: datetime | None = None
    begun: Sequence[FirstSeen] = ()
    deploys: Sequence[ReportedDeploy] = ()

    def first_call(self, touches: Callable[[Dimensions], bool]) -> datetime | None:
        """Return the first call of a version that started around the onset, or None."""
        times = (version.at for version in self.begun if touches(version.place))
        return min(times, default=None)

    def is_near(self, at: datetime) -> bool:
        """Whether a time lies in the interval of the onset, or nearly."""
        if self.low is None or self.high is None:
            return True
        return self.low - AROUND <= at <= self.high + AROUND

    @property
    def is_sharp(self) -> bool:
        """Whether the interval is so short that little is near it by chance."""
        if self.low is None or self.high is None:
            return False
        return self.high - self.low <= SHARP

    def early(self, touches: Callable[[Dimensions], bool]) -> tuple[int, int]:
        """Return the calls of a version before the onset, and those that failed."""
        versions = [version for version in self.begun if touches(version.place)]
        return sum(version.calls for version in versions), sum(
            version.failed for version in versions
        )

    def is_after(self, at: datetime) -> bool:
        """Whether a time lies clearly after the onset."""
        return self.high is not None and at > self.high + AROUND

    def is_before(self, at: datetime) -> bool:
        """Whether a time lies clearly before the onset."""
        return self.low is not None and at < self.low - AROUND

    def deploy_kinds(self) -> set[str]:
        """Return the kinds of the deploys reported around the onset."""
        return {deploy.kind for deploy in self.deploys if self.is_near(deploy.at)}


UNTIMED = Timing()


def is_new(
    touches: Callable[[Dimensions], bool],
    cells: Sequence[CountCell],
    before: Sequence[CountCell],
    timing: Timing,
) -> bool:
    """Whether a version can be the cause of the degradation, judged by time.

    1. It was called the week before: no.
    2. It started clearly after the onset: no.
    3. It started around the onset: yes.
    4. It started clearly before: its first calls show whether they failed as much already,
    so that the onset was a little earlier; few calls show nothing.
    """
    recent = {version.place for version in timing.begun}
    if any(touches(cell.place) and cell.place.versions not in recent for cell in before):
        return False
    begun = timing.first_call(touches)
    if begun is None:
        return True
    if timing.is_after(begun):
        return False
    if not timing.is_before(begun):
        return True
    calls, failed = timing.early(touches)
    bad = _rate(*_count_touched(touches, cells))
    baseline = _baseline_rate(touches, before)
    if bad <= baseline or not calls:
        return 0 < calls < FEW_CALLS
    good = calls - failed
    ratio = failed * log(bad / baseline) + good * log((1 - bad) / (1 - baseline))
    if ratio < ACQUITTED:
        return False
    return ratio > CONVICTED or calls < FEW_CALLS


def _count_touched(
    touches: Callable[[Dimensions], bool], cells: Sequence[CountCell]
) -> tuple[int, int]:
    touched = [cell for cell in cells if touches(cell.place)]
    return sum(cell.attempts for cell in touched), sum(cell.failed for cell in touched)


def _baseline_rate(touches: Callable[[Dimensions], bool], before: Sequence[CountCell]) -> float:
    """Return the share of failures without a version; of everything where that is little."""
    calls, failed = _count_touched(lambda place: not touches(place), before)
    if calls >= HEALTHY_CALLS:
        return _rate(calls, failed)
    return _rate(*_count_touched(lambda _: True, before))


def _rate(calls: int, failed: int) -> float:
    return min(max(failed / calls if calls else LOWEST, LOWEST), HIGHEST)
