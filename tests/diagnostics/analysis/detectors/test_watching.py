"""The `change` detector over traffic made from a seed."""

from collections.abc import Iterator
from random import Random

import pytest

from diagnostics.analysis.detectors.baseline import Expectation, History
from diagnostics.analysis.detectors.call_history import Block, Split
from diagnostics.analysis.detectors.change import (
    Suspicion,
    alarm_level,
    clearly_worse,
    feared_rates,
    weigh,
)
from diagnostics.analysis.detectors.change_detector import ChangeDetector, Fire
from diagnostics.analysis.detectors.replay import Call, Detector, replay
from diagnostics.analysis.detectors.results import WindowCounts

HOUR = 3600.0
DAY = 24 * HOUR


def traffic(seed: str, calls_an_hour: float, *stretches: tuple[float, float]) -> Iterator[Call]:
    """Make calls that come at random through stretches of (seconds, failing share)."""
    random, at, end = Random(seed), 0.0, 0.0
    for seconds, share in stretches:
        end += seconds
        while at < end:
            at += random.expovariate(calls_an_hour / 3600)
            yield at, int(random.random() < share)


def fires(*stretches: tuple[float, float], rate: float, seed: str) -> list[Fire]:
    return replay(Detector.CHANGE, traffic(seed, rate, *stretches))


@pytest.mark.parametrize("seed", ["one", "two", "three"])
@pytest.mark.parametrize("detector", [Detector.CHANGE, Detector.THRESHOLD])
def test_twenty_bad_minutes_are_one_fire_and_one_recovery(detector: Detector, seed: str) -> None:
    calls = traffic(seed, 300, (HOUR, 0.02), (HOUR / 3, 0.25), (HOUR, 0.02))
    [fire] = replay(detector, calls, series=1)
    assert HOUR < fire.at < HOUR + HOUR / 3
    assert fire.cleared is not None
    assert fire.cleared > HOUR + HOUR / 3


@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_flapping_for_a_day_is_at_most_two_episodes(seed: str) -> None:
    flapping = [(15 * 60.0, share) for _ in range(48) for share in (0.04, 0.06)]
    assert len(fires(*flapping, rate=300, seed=seed)) <= 2


@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_the_onset_is_near_the_truth(seed: str) -> None:
    [fire] = fires((7 * DAY, 0.02), (4 * HOUR, 0.35), rate=60, seed=seed)
    assert abs(fire.onset - 7 * DAY) < 0.5 * HOUR
    assert fire.at - 7 * DAY < HOUR


def test_healthy_weeks_stay_quiet() -> None:
    assert not fires((21 * DAY, 0.03), rate=30, seed="healthy")


def test_a_series_that_always_fails_in_runs_of_three_stays_quiet() -> None:
    calls = [(place * 120.0, int(place % 150 in (7, 8, 9))) for place in range(21 * 720)]
    assert not replay(Detector.CHANGE, calls)


def test_a_time_of_day_that_is_usually_worse_is_allowed_to_be() -> None:
    day = [(20 * HOUR, 0.02), (4 * HOUR, 0.10)]
    assert not [f for f in fires(*day * 21, rate=60, seed="rhythm") if f.at > 14 * DAY]


def test_a_known_baseline_holds_from_the_first_call_on() -> None:
    calls = list(traffic("known", 60, (4 * HOUR, 0.30)))
    assert replay(Detector.CHANGE, calls, baseline=0.02)
    assert not replay(Detector.CHANGE, calls, baseline=0.30)


def test_minutes_say_what_calls_say() -> None:
    calls = list(traffic("minutes", 600, (3 * DAY, 0.02), (HOUR, 0.30)))
    minutes: dict[int, list[int]] = {}
    for at, failed in calls:
        minutes.setdefault(int(at // 60), []).append(failed)
    watch = ChangeDetector()
    found = [
        fire
        for minute, failed in minutes.items()
        if (fire := watch.feed(60.0 * (minute + 1), len(failed), sum(failed)))
    ]
    [by_call] = replay(Detector.CHANGE, calls)
    assert abs(found[0].at - by_call.at) < 300
    assert abs(found[0].onset - by_call.onset) < 600


def test_three_times_the_usual_rate_is_feared_and_one_far_above_it() -> None:
    assert feared_rates(0.02) == pytest.approx((0.06, 0.22))
    assert feared_rates(0.10) == pytest.approx((0.30,))
    assert feared_rates(0.30) == pytest.approx((0.50, 0.90))
    assert all(rate < 1 for rate in feared_rates(0.8))


def test_where_failures_come_in_bursts_fewer_new_bursts_are_feared() -> None:
    assert feared_rates(0.01, 5.0) == pytest.approx((0.03, 0.05, 0.21))
    assert feared_rates(0.02, 1.1) == feared_rates(0.02)


@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_an_outage_of_a_series_whose_failures_stick_together_is_seen(seed: str) -> None:
    random, failed = Random(seed), False
    watch = ChangeDetector(series=1)
    for minute in range(8 * 1440):
        failed = random.random() < (0.5 if failed else 0.015)
        watch.feed(minute * 60.0, 1, int(failed))
    begun = 8 * DAY
    told = [watch.feed(begun + minute * 60.0, 1, 1) for minute in range(20)]
    assert watch.fire or any(told)


@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_more_blocks_of_failures_than_usual_are_seen_within_hours(seed: str) -> None:
    """Five at once, five times a day; then twelve times as often."""
    random, left, calls = Random(seed), 0, list[Call]()
    for minute in range(9 * 1440):
        often = 60 if minute >= 8 * 1440 else 5
        left = 5 if not left and random.random() < often / 1440 else max(left - 1, 0)
        calls.append((minute * 60.0, int(left > 0)))
    found = [f.at for f in replay(Detector.CHANGE, calls, series=1) if f.at > 8 * DAY]
    assert found
    assert found[0] < 8.4 * DAY


def test_trouble_is_over_well_below_a_clear_worsening() -> None:
    assert clearly_worse(0.02) == pytest.approx(0.12)
    assert clearly_worse(0.10) == pytest.approx(0.30)
    assert clearly_worse(0.8) < 1


def test_every_sum_falls_on_average_while_all_is_well() -> None:
    expected = Expectation(0.04, 0.3, 0.1)
    for weights in weigh(expected):
        for share, weight in zip(expected.kinds, weights, strict=True):
            assert share * weight.failed + (1 - share) * weight.good <= 1e-12


def test_a_larger_project_needs_more_evidence() -> None:
    levels = [alarm_level(10_000, series) for series in (480, 48, 5)]
    assert levels == sorted(levels, reverse=True)
    assert alarm_level(10_000, 1) == alarm_level(10_000, 5)


def test_a_sum_that_often_climbs_says_less() -> None:
    one = Suspicion()
    calm = Suspicion(total=6.0).evidence
    for _ in range(200):
        one.add(6.0, 1.0, 20.0)
        one.add(-6.0, 2.0, 20.0)
        one.learn_climb(2.0, 10.0)
    one.add(6.0, 3.0, 20.0)
    assert one.evidence < calm / 2


def test_a_new_series_is_expected_to_fail_in_five_percent() -> None:
    assert History().expect(0.0) == Expectation(0.05, 0.35, 0.18)


def test_hours_that_surely_differ_let_one_expect_more() -> None:
    steady, restless = History(), History()
    for hour in range(14 * 24):
        for history, failed in ((steady, 12), (restless, 0 if hour % 2 else 24)):
            split = Split(fresh=WindowCounts(600, failed))
            history.add(Block(hour * HOUR, split))
    assert steady.expect(0.0).fresh < 0.025
    assert restless.expect(0.0).fresh > 0.04


def test_what_drifts_up_slowly_is_expected_to_be_there() -> None:
    flat, rising = History(), History()
    for hour in range(14 * 24):
        for history, failed in ((flat, 18), (rising, 6 + hour // 14)):
            history.add(Block(hour * HOUR, Split(fresh=WindowCounts(600, failed))))
    end = 14 * DAY
    assert rising.expect(end).fresh > 1.3 * flat.expect(end).fresh


@pytest.mark.parametrize(("days", "rate"), [(7, 60), (0, 60), (7, 12)])
def test_a_level_that_lasts_for_days_becomes_the_usual_one(days: float, rate: float) -> None:
    stretches = (days * DAY, 0.02), (10 * DAY, 0.30)
    [fire] = fires(*stretches, rate=rate, seed="for good")
    assert fire.cleared is not None
    assert fire.is_usual
    assert (3 if days else 1) * DAY <= fire.cleared - fire.at < 4 * DAY


def test_an_outage_of_days_becomes_no_usual_level() -> None:
    [fire] = fires((7 * DAY, 0.02), (6 * DAY, 0.97), rate=60, seed="outage")
    assert fire.cleared is None


def test_trouble_that_gets_better_after_days_is_not_taken_for_usual() -> None:
    [fire] = fires((7 * DAY, 0.02), (2 * DAY, 0.3), (DAY, 0.02), rate=60, seed="two")
    assert fire.cleared is not None
    assert not fire.is_usual


def test_a_new_level_is_remembered_by_a_watch_that_was_kept() -> None:
    watch, usual = ChangeDetector(series=1), []
    for at, failed in traffic("kept", 60, (7 * DAY, 0.02), (5 * DAY, 0.30)):
        fire = watch.feed(at, 1, failed)
        usual += [fire.cleared] if fire and fire.is_usual else []
        if int(at) % 7 == 0:
            watch = ChangeDetector.restore(watch.state(), watch.memory(), 1)
    assert len(usual) == 1
    assert watch.expected > 0.2


def test_a_quiet_series_that_was_never_well_ends_its_alarm_and_stays_calm() -> None:
    """Six calls a day, a quarter of which fail: that is what is usual there."""
    random, watch, fires = Random("quiet"), ChangeDetector(), []
    for call in range(6 * 60):
        failed = int(random.random() < 0.25)
        if told := watch.feed(call * 86_400 / 6, 1, failed):
            fires.append(told)
    assert len({fire.at for fire in fires}) <= 1
    assert watch.fire is None
    assert watch.expected > 0.15
