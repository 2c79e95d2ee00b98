"""Stories of an alert at 300 calls an hour: one trouble, and a flapping rate.

Each is told with many seeds; printed is in how many an incident was what it should be, and how
many minutes after the trouble it was over. Three healthy hours follow, in which a second
incident would show. An alarm that comes back within an hour reopens its incident, as in the
product.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from statistics import median
from typing import NamedTuple

from bench.database import say
from diagnostics.alerting.attribution import REOPENS
from diagnostics.analysis.detectors.change import Fire
from diagnostics.analysis.detectors.replay import Call, Detector, replay, replay_together

HOUR = 3600.0
DAY = 24 * HOUR
CALLS_AN_HOUR = 300
HEALTHY, BAD = 0.02, 0.25
BAD_FROM, BAD_UNTIL = HOUR, HOUR + HOUR / 3
TROUBLE = (BAD_FROM, HEALTHY), (BAD_UNTIL - BAD_FROM, BAD), (3 * HOUR, HEALTHY)
FLAPPING = tuple((900.0, share) for _ in range(48) for share in (0.04, 0.06))
LEARNED = 7 * DAY
Stretch = tuple[float, float]


def traffic(seed: str, stretches: Sequence[Stretch]) -> Iterator[Call]:
    """Make calls that come at random through stretches of (seconds, failing share)."""
    random, at, end = Random(seed), 0.0, 0.0  # noqa: S311 - simulation
    for seconds, share in stretches:
        end += seconds
        while at < end:
            at += random.expovariate(CALLS_AN_HOUR / 3600)
            yield at, int(random.random() < share)


GOOD = "good"


class End(NamedTuple):
    """How a story ended: good or what was wrong, and how long after its trouble it was over."""

    said: str
    minutes: float | None = None


def incidents_of(fires: Iterable[Fire]) -> list[Fire]:
    """Return alarms as incidents: one that comes back soon goes on with the one before."""
    found: list[Fire] = []
    for fire in fires:
        last = found[-1] if found else None
        if last and last.cleared is not None and fire.at - last.cleared <= REOPENS.total_seconds():
            found[-1] = last._replace(cleared=fire.cleared)
        else:
            found.append(fire)
    return found


def end_of(fires: Sequence[Fire], begin: float) -> End:
    """Say how a trouble ended: one fire within the 20 bad minutes and one recovery is good."""
    found = [fire for fire in incidents_of(fires) if fire.at >= begin]
    if len(found) != 1:
        return End("more than one fire" if found else "not seen")
    [fire] = found
    if not begin + BAD_FROM < fire.at <= begin + BAD_UNTIL:
        return End("at another time")
    if fire.cleared is None:
        return End("not over after three hours")
    return End(GOOD, (fire.cleared - begin - BAD_UNTIL) / 60)


def print_stories(seeds: range) -> int:
    """Print in how many of these seeds each story ended well; 0 when all did."""
    found = [
        _tell("one trouble, a new series, change", seeds, _fresh(Detector.CHANGE)),
        _tell("one trouble, a new series, threshold", seeds, _fresh(Detector.THRESHOLD)),
        _tell("one trouble, a week learned, change", seeds, _learned),
        _tell("4 % and 6 % by turns for a day, change", seeds, _flaps),
        _tell_together(seeds),
    ]
    return 0 if all(found) else 1


def _tell(name: str, seeds: range, ends: Callable[[int], End]) -> bool:
    return _write(name, list(map(ends, seeds)))


def _write(name: str, ends: Sequence[End]) -> bool:
    counted = Counter(end.said for end in ends)
    good, told = counted.pop(GOOD, 0), len(ends)
    minutes = [end.minutes for end in ends if end.minutes is not None]
    over = f"over after {median(minutes):.0f} min, {max(minutes):.0f} at most" if minutes else ""
    others = ", ".join(f"{count} {said}" for said, count in counted.most_common())
    say(f"{name:45}{good:4d} of {told}; {'; '.join(filter(None, (over, others)))}")
    return good >= 0.99 * told


def _fresh(detector: Detector) -> Callable[[int], End]:
    return lambda seed: end_of(replay(detector, traffic(f"new {seed}", TROUBLE), series=1), 0.0)


def _learned(seed: int) -> End:
    calls = traffic(f"learned {seed}", ((LEARNED, HEALTHY), *TROUBLE))
    return end_of(replay(Detector.CHANGE, calls, series=1), LEARNED)


def _flaps(seed: int) -> End:
    calls = traffic(f"flapping {seed}", FLAPPING)
    is_quiet = len(incidents_of(replay(Detector.CHANGE, calls, series=1))) <= 2
    return End(GOOD if is_quiet else "more than two fires")


def _tell_together(seeds: range) -> bool:
    calls = [list(traffic(f"new {seed}", TROUBLE)) for seed in seeds]
    fires = replay_together(calls)
    return _write("one trouble, all series of one project", [end_of(one, 0.0) for one in fires])
