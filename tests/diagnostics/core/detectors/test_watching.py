"""The `change` detector over traffic made from a seed."""

from collections.abc import Iterator
from random import Random

import pytest

from diagnostics.core.detectors.change import (
    Suspicion,
    alarm_level,
    feared_rates,
    weigh,
)
from diagnostics.core.detectors.expectation import Expectation, History
from diagnostics.core.detectors.replay import Call, Detector, replay
from diagnostics.core.detectors.watching import Fire, Watch

HOUR = 3600.0
DAY = 24 * HOUR


def traffic(
    seed: str, calls_an_hour: float, *stretches: tuple[float, float]
) -> Iterator[Call]:
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
def test_twenty_bad_minutes_are_one_fire_and_one_recovery(
    detector: Detector, seed: str
) -> None:
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
    calls = [
        (place * 120.0, int(place % 150 in (7, 8, 9))) for place in range(21 * 720)
    ]
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
    watch = Watch()
    found = [
        fire
        for minute, failed in minutes.items()
        if (fire := watch.feed(60.0 * (minute + 1), len(failed), sum(failed)))
    ]
    [by_call] = replay(Detector.CHANGE, calls)
    assert abs(found[0].at - by_call.at) < 300
    assert abs(found[0].onset - by_call.onset) < 600


def test_a_feared_rate_is_at_least_three_times_or_ten_points_more() -> None:
    assert feared_rates(0.02)[0] == pytest.approx(0.12)
    assert feared_rates(0.10)[0] == pytest.approx(0.30)
    assert all(rate < 1 for rate in feared_rates(0.8))


def test_every_sum_falls_on_average_while_all_is_well() -> None:
    expected = Expectation(0.04, 0.3, 0.1)
    for weights in weigh(expected):
        for share, weight in zip(expected, weights, strict=True):
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
