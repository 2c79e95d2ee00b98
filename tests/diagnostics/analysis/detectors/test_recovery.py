"""How an alarm ends where calls come in bursts, and that steady traffic has none."""

from random import Random

import pytest

from diagnostics.analysis.detectors.change import ChangeDetector
from diagnostics.analysis.detectors.evidence import latest_burst
from diagnostics.analysis.detectors.onset import CountedStretch

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
CALLS, FAILING, HOURS = 24, 12, 6
BEGUN = 60 * DAY + 19.5 * MINUTE


class Batches:
    """A job that calls in a burst every hour, and the alarms for it."""

    def __init__(self, order: str, seconds: float) -> None:
        self._order, self._seconds = order, seconds
        self._random, self.detector = Random(f"{order} {seconds}"), ChangeDetector(5)

    def call(self, at: float, calls: int, failing: int) -> None:
        """Make the calls of a burst."""
        failed = [1] * failing + [0] * (calls - failing)
        if self._order == "failures last" or (
            self._order == "either first" and self._random.random() < 0.5
        ):
            failed.reverse()
        elif self._order == "mixed":
            self._random.shuffle(failed)
        minutes: dict[float, list[int]] = {}
        for place, one in enumerate(failed):
            minute = (at + self._seconds * place / calls) // MINUTE * MINUTE
            minutes.setdefault(minute, []).append(one)
        for minute, told in minutes.items():
            self.detector.feed(minute, len(told), sum(told))


@pytest.mark.parametrize("order", ["failures first", "failures last", "mixed", "either first"])
@pytest.mark.parametrize("seconds", [30, 60, 180, 600, 1200])
@pytest.mark.parametrize("has_past", [True, False])
def test_bursts_that_fail_by_half_are_one_alarm_until_one_is_well(
    order: str, seconds: float, has_past: bool
) -> None:
    batches = Batches(order, seconds)
    if has_past:
        for hour in range(-72, 0):
            batches.call(BEGUN + hour * HOUR, CALLS, hour % 3 == 0)
    else:
        batches.call(BEGUN - 2 * DAY, 198, 2)
    for hour in range(HOURS):
        batches.call(BEGUN + hour * HOUR, CALLS, FAILING)
    [lasting] = batches.detector.fires
    assert lasting.cleared is None
    counts = batches.detector.counts
    assert counts.failed <= counts.calls / 2 + 12
    for hour in range(HOURS, HOURS + 2):
        batches.call(BEGUN + hour * HOUR, CALLS, 0)
    [ended] = batches.detector.fires
    assert ended.cleared
    assert BEGUN + HOURS * HOUR <= ended.cleared + MINUTE <= BEGUN + (HOURS + 0.5) * HOUR


def stretches(*counts: tuple[float, int, int]) -> list[CountedStretch]:
    """Return minutes of (when, calls, failures)."""
    return [CountedStretch(at * MINUTE, MINUTE, *each) for at, *each in counts]


def test_the_minutes_of_a_burst_count_together_once_there_are_as_many_calls_as_before() -> None:
    before = (0, 12, 12), (1, 12, 0)
    begun = latest_burst(stretches(*before, (60, 12, 0)), 0.0)
    assert (begun.begin, begun.calls, begun.failed) == (60 * MINUTE, 12, 0)
    assert begun.is_whole
    second = latest_burst(stretches(*before, (60, 12, 12), (61, 12, 0), (120, 12, 0)), 0.0)
    assert (second.calls, second.is_whole) == (12, False)
    third = latest_burst(stretches((60, 24, 12), (120, 12, 0), (121, 12, 12)), 0.0)
    assert third == (120 * MINUTE, 24, 12, True)


def test_calls_of_a_burst_from_before_the_onset_do_not_count() -> None:
    burst = latest_burst(stretches((0, 24, 0), (60, 12, 0), (61, 12, 12)), 61 * MINUTE)
    assert (burst.calls, burst.failed) == (12, 12)


def test_each_minute_of_steady_traffic_is_judged_by_itself() -> None:
    steady = stretches(*((at, 1, 0) for at in (0, 4, 9, 12, 20, 24, 25)))
    for last in range(1, len(steady)):
        burst = latest_burst(steady[: last + 1], 0.0)
        assert (burst.begin, burst.is_whole) == (steady[last].at, True)


def test_late_calls_of_an_alarm_count() -> None:
    detector = ChangeDetector()
    for minute in range(200):
        detector.feed(minute * MINUTE, 5, 5 if minute > 180 else 0)
    known = detector.counts
    detector.feed(195 * MINUTE, 2, 2)
    assert detector.counts == (known.calls + 2, known.failed + 2)


def test_an_alarm_can_be_taken_over_before_the_first_call() -> None:
    detector = ChangeDetector()
    detector.keep_firing(2 * HOUR, HOUR)
    detector.feed(3 * HOUR, 5, 5)
    assert detector.fire
    assert detector.counts == (5, 5)
