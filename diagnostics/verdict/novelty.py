"""When versions started, and whether that was with a degradation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from diagnostics.verdict.cells import Dimensions

AROUND = timedelta(minutes=15)
"""How far from the interval of the onset a version may start and still be the cause."""
SHARP = timedelta(hours=2)
HOUR = timedelta(hours=1)


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
    others: Sequence[tuple[datetime, datetime]] = ()
    """The intervals of the onsets of other degradations that last."""

    def first_call(self, touches: Callable[[Dimensions], bool]) -> datetime | None:
        """Return the first call of a version that started around the onset, or None."""
        times = (version.at for version in self.begun if touches(version.place))
        return min(times, default=None)

    def is_near(self, at: datetime) -> bool:
        """Whether a time lies in the interval of an onset, or nearly."""
        if self.low is None or self.high is None:
            return True
        intervals = ((self.low, self.high), *self.others)
        return any(low - AROUND <= at <= high + AROUND for low, high in intervals)

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
        return self.high is not None and at > self.high + AROUND and not self.is_near(at)

    def hours_before(self, at: datetime) -> float:
        """Return how long before the onset a time lies."""
        return max((self.low - at) / HOUR, 0.0) if self.low else 0.0

    def deploy_kinds(self) -> set[str]:
        """Return the kinds of the deploys reported around the onset."""
        return {deploy.kind for deploy in self.deploys if self.is_near(deploy.at)}


UNTIMED = Timing()
