"""The `change` detector over traffic made from a seed."""

from collections.abc import Iterator
from random import Random

import pytest

from diagnostics.analysis.detectors.baseline import Expectation, History
from diagnostics.analysis.detectors.call_history import Block, KindCounts, Split
from diagnostics.analysis.detectors.change import (
    Dispersion,
    Suspicion,
    alarm_level,
    feared_rates,
    fears_of,
    gain_of,
    trouble_rate,
)
from diagnostics.analysis.detectors.change_detector import ChangeDetector, Fire
from diagnostics.analysis.detectors.replay import Call, Detector, Pool, replay

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


def test_some_times_the_usual_rate_is_feared_and_one_far_above_it() -> None:
    assert feared_rates(0.02) == pytest.approx((0.052, 0.22))
    assert feared_rates(0.10) == pytest.approx((0.26,))
    assert feared_rates(0.30) == pytest.approx((0.50, 0.78))
    assert all(rate < 1 for rate in feared_rates(0.8))


def test_where_failures_come_in_bursts_fewer_new_bursts_are_feared() -> None:
    assert feared_rates(0.01, 5.0) == pytest.approx((0.026, 0.05, 0.21))
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


def test_trouble_goes_on_at_the_rate_it_surely_has_within_bounds() -> None:
    assert 0.1 < trouble_rate(Suspicion(calls=40, failed=6), 0.03) < 0.15
    assert 0.14 < trouble_rate(Suspicion(calls=4000, failed=600), 0.03) < 0.15
    assert trouble_rate(Suspicion(calls=40, failed=1), 0.03) == pytest.approx(0.078)
    assert trouble_rate(Suspicion(calls=5, failed=5), 0.03) == pytest.approx(0.23)
    assert trouble_rate(Suspicion(calls=5, failed=5), 0.8) < 1


def test_every_sum_falls_on_average_while_all_is_well() -> None:
    expected = Expectation(0.04, 0.3, 0.1)
    for fear in fears_of(expected):
        for share, weight in zip(expected.kinds, fear.weights, strict=True):
            assert share * weight.failed + (1 - share) * weight.good <= 1e-12


def test_a_rate_known_from_few_calls_speaks_less_for_a_worsening() -> None:
    calls = Split(fresh=KindCounts(40, 10))
    gains = []
    for weight in (50.0, 500.0, 1e6):
        expected = Expectation(0.04, 0.3, 0.1, weight=weight)
        fear = fears_of(expected)[-1]
        gains.append(fear.gain(calls, expected, Suspicion(), 1.0))
        assert fear.gain(calls, expected, Suspicion(), 2.0) == pytest.approx(gains[-1] / 2)
    assert gains == sorted(gains)
    assert gains[2] == pytest.approx(gain_of(calls, fear.weights), rel=1e-3)


def test_failures_that_come_together_in_minutes_are_dispersed() -> None:
    alone, together = Dispersion(), Dispersion()
    for minute in range(3000):
        alone.add(KindCounts(10, int(minute % 10 < 3)), 0.03)
        together.add(KindCounts(10, 3 * int(minute % 10 == 0)), 0.03)
    assert alone.factor == together.factor
    alone.learn()
    together.learn()
    assert alone.factor < 1.1
    assert together.factor > 2


def test_how_much_a_trouble_varies_is_not_taken_for_usual() -> None:
    watch = ChangeDetector()
    for at, failed in traffic("varies", 60, (2 * DAY, 0.03)):
        watch.feed(at, 1, failed)
    known = list[object]()
    for minute in range(60):
        watch.feed(2 * DAY + minute * 60, 1, int(minute % 4 == 0))
        if not watch.fire and watch.evidence > watch.alarm / 3:
            known.append(watch.state()["dispersion"][:2])
    assert len(known) > 10
    assert len(set(known)) == 1


def test_few_calls_an_hour_do_not_make_a_steady_rate_seem_to_wander() -> None:
    uncertain = 0
    for seed in range(40):
        random, history = Random(seed), History()
        for hour in range(14 * 24):
            calls = 2 if hour % 2 else 20
            failed = sum(random.random() < 0.03 for _ in range(calls))
            history.add(Block(hour * HOUR, Split(fresh=KindCounts(calls, failed))))
        uncertain += history.expect(0.0).weight < history.calls / 2
    assert uncertain <= 1


def test_trouble_that_began_slowly_and_became_worse_ends_soon_after_its_end() -> None:
    begin, end = 7 * DAY, 7 * DAY + 2 * HOUR
    stretches = (begin, 0.02), (HOUR, 0.06), (HOUR, 0.4), (2 * HOUR, 0.02)
    for seed in range(5):
        told = fires(*stretches, rate=300, seed=f"slow {seed}")
        [fire] = [one for one in told if one.at > begin]
        assert fire.cleared
        assert end < fire.cleared < end + 0.75 * HOUR


@pytest.mark.parametrize("seed", range(5))
def test_trouble_of_a_day_is_one_fire_and_one_recovery(seed: int) -> None:
    stretches = (7 * DAY, 0.03), (DAY, 0.25), (DAY, 0.03)
    found = [one for one in fires(*stretches, rate=12, seed=f"day {seed}") if one.at > 7 * DAY]
    assert len(found) == 1
    assert found[0].cleared
    assert found[0].cleared > 8 * DAY


def test_more_series_more_calls_and_more_chances_need_more_evidence() -> None:
    assert alarm_level(10_000, 480, 0.1) > alarm_level(10_000, 48, 0.1)
    assert alarm_level(100_000, 48, 0.1) > alarm_level(10_000, 48, 0.1)
    assert alarm_level(10_000, 48, 0.2) > alarm_level(10_000, 48, 0.1)
    assert alarm_level(1, 1, 0.1) > 0


def test_a_sum_that_often_climbs_says_less() -> None:
    one = Suspicion()
    calm = Suspicion(total=6.0).evidence
    for _ in range(200):
        one.add(6.0, KindCounts(), 1.0, 20.0)
        one.add(-6.0, KindCounts(), 2.0, 20.0)
        one.learn_climb(2.0, 10.0)
    one.add(6.0, KindCounts(), 3.0, 20.0)
    assert one.evidence < calm / 2


def test_a_new_series_is_expected_to_fail_in_five_percent() -> None:
    assert History().expect(0.0) == Expectation(0.05, 0.35, 0.18)


def test_where_hours_surely_differ_the_usual_rate_is_less_certain() -> None:
    steady, restless = History(), History()
    for hour in range(14 * 24):
        for history, failed in ((steady, 12), (restless, 0 if hour // 24 % 2 else 24)):
            split = Split(fresh=KindCounts(600, failed))
            history.add(Block(hour * HOUR, split))
    assert steady.expect(0.0).weight > 10_000
    assert restless.expect(0.0).weight < 200


def test_times_of_day_that_differ_have_rates_of_their_own() -> None:
    history = History()
    for hour in range(14 * 24):
        failed = 48 if hour % 24 in (8, 9, 10) else 12
        history.add(Block(hour * HOUR, Split(fresh=KindCounts(600, failed))))
    assert history.expect(9 * HOUR).fresh > 0.06
    assert history.expect(20 * HOUR).fresh < 0.03


def test_where_the_rate_drifts_it_is_less_certain() -> None:
    flat, rising = History(), History()
    for hour in range(14 * 24):
        for history, failed in ((flat, 18), (rising, 6 + hour // 14)):
            history.add(Block(hour * HOUR, Split(fresh=KindCounts(600, failed))))
    end = 14 * DAY
    assert rising.expect(end).weight < 0.1 * flat.expect(end).weight


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


def test_a_detector_that_is_put_by_every_minute_knows_what_one_in_memory_does() -> None:
    """Its memory is kept when an hour has ended, as the evaluator does it."""
    whole, kept, memory = ChangeDetector(), ChangeDetector(), ChangeDetector().memory()
    for minute in range(20 * 60):
        failed = int(minute % 40 == 0)
        assert whole.feed(minute * 60.0, 2, failed) == kept.feed(minute * 60.0, 2, failed)
        if minute % 60 == 0 or len(kept.memory()) != len(memory):
            memory = kept.memory()
        kept = ChangeDetector.restore(kept.state(), memory)
    assert kept.memory() == whole.memory()
    assert kept.expected == whole.expected


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


def test_a_series_that_fired_makes_others_need_less_only_while_that_is_news() -> None:
    assert Fire(10_000.0, 4_000.0).is_news(16_000.0)
    assert not Fire(10_000.0, 4_000.0).is_news(16_001.0)
    assert Fire(10_000.0, 9_900.0).is_news(11_800.0)
    assert not Fire(10_000.0, 9_900.0).is_news(11_801.0)


@pytest.mark.parametrize(("minutes", "fires"), [(20, True), (180, False)])
def test_an_outage_that_goes_on_does_not_make_others_fire(minutes: int, fires: bool) -> None:
    """Four series fail from the first minute on, the fifth begins to a while later."""
    pool, lone = Pool([0.02] * 5), ChangeDetector(5, 0.02)
    for minute in range(minutes):
        for place in range(4):
            pool.feed(place, minute * 60.0, 5, 5)
    at, fired = minutes * 60.0, None
    while lone.margin > 0.8:
        at += 1
        lone.feed(at, 1, 1)
        fired = fired or pool.feed(4, at, 1, 1)
    assert lone.fire is None
    assert bool(fired or pool.feed(4, at + 1, 0, 1)) is fires
