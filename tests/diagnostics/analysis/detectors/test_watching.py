"""The `change` detector over traffic made from a seed."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from random import Random

import pytest

from diagnostics.analysis.detectors.change import ChangeDetector, Fire
from diagnostics.analysis.detectors.onset import Onset
from diagnostics.analysis.detectors.replay import (
    Call,
    Detector,
    ProjectDetectors,
    replay,
    replay_together,
)
from diagnostics.analysis.detectors.usual import Learned

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
    fire, *_ = fires((7 * DAY, 0.02), (4 * HOUR, 0.35), rate=60, seed=seed)
    assert abs(fire.onset.at - 7 * DAY) < 0.5 * HOUR
    assert fire.at - 7 * DAY < HOUR


@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_the_onset_of_few_calls_is_known_better_after_some_more(seed: str) -> None:
    """With three calls an hour an alarm knows a few bad ones; half a day later there are more."""
    calls = list(traffic(seed, 3, (14 * DAY, 0.02), (DAY / 2, 0.6)))
    detector, fired = ChangeDetector(), None
    for at, failed in calls:
        fired = detector.feed(at, 1, failed) or fired
    assert fired is not None
    first, last = fired.onset, detector.fires[-1].onset
    assert detector.fires[-1].at == fired.at
    assert last.high - last.low < (first.high - first.low) / 2
    assert last.low < 14 * DAY < last.high


def test_healthy_weeks_stay_quiet() -> None:
    assert not fires((21 * DAY, 0.03), rate=30, seed="healthy")


def test_a_series_that_always_fails_in_runs_of_three_stays_quiet() -> None:
    calls = [(place * 120.0, int(place % 150 in (7, 8, 9))) for place in range(21 * 720)]
    assert not replay(Detector.CHANGE, calls)


@pytest.mark.slow
def test_a_time_of_day_that_is_usually_worse_is_allowed_to_be() -> None:
    day = [(20 * HOUR, 0.02), (4 * HOUR, 0.10)]
    assert not [f for f in fires(*day * 21, rate=60, seed="rhythm") if f.at > 14 * DAY]


def test_a_known_baseline_holds_from_the_first_call_on() -> None:
    calls = list(traffic("known", 60, (4 * HOUR, 0.30)))
    assert replay_together([calls], [0.02])[0]
    assert not replay_together([calls], [0.30])[0]


@pytest.mark.slow
def test_minutes_say_what_calls_say() -> None:
    calls = list(traffic("minutes", 600, (3 * DAY, 0.02), (HOUR, 0.30)))
    minutes: dict[int, list[int]] = {}
    for at, failed in calls:
        minutes.setdefault(int(at // 60), []).append(failed)
    watch = ChangeDetector(48)
    found = [
        fire
        for minute, failed in minutes.items()
        if (fire := watch.feed(60.0 * (minute + 1), len(failed), sum(failed)))
    ]
    [by_call] = replay(Detector.CHANGE, calls)
    assert abs(found[0].at - by_call.at) < 300
    assert abs(found[0].onset.at - by_call.onset.at) < 600


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_trouble_that_began_slowly_and_became_worse_ends_soon_after_its_end() -> None:
    begin, end = 7 * DAY, 7 * DAY + 2 * HOUR
    stretches = (begin, 0.02), (HOUR, 0.06), (HOUR, 0.4), (2 * HOUR, 0.02)
    for seed in range(5):
        told = fires(*stretches, rate=300, seed=f"slow {seed}")
        [fire] = [one for one in told if one.at > begin]
        assert fire.cleared
        assert end < fire.cleared < end + 0.75 * HOUR


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("usual", "bad", "rate"), [(0.03, 0.25, 12), (0.3, 0.5, 60)])
def test_trouble_of_a_day_is_one_fire_and_one_recovery(
    usual: float, bad: float, rate: float, seed: int
) -> None:
    stretches = (7 * DAY, usual), (DAY, bad), (DAY, usual)
    found = [one for one in fires(*stretches, rate=rate, seed=f"day {seed}") if one.at > 7 * DAY]
    assert len(found) == 1
    assert found[0].cleared
    assert found[0].cleared > 8 * DAY


@pytest.mark.parametrize(("days", "rate"), [(7, 60), (7, 12)])
def test_a_level_that_lasts_for_days_becomes_the_usual_one(days: float, rate: float) -> None:
    stretches = (days * DAY, 0.02), (10 * DAY, 0.30)
    [fire] = fires(*stretches, rate=rate, seed="for good")
    assert fire.cleared is not None
    assert fire.is_usual
    assert 3 * DAY <= fire.cleared - fire.at < 4 * DAY


def test_an_outage_of_days_becomes_no_usual_level() -> None:
    [fire] = fires((7 * DAY, 0.02), (6 * DAY, 0.97), rate=60, seed="outage")
    assert fire.cleared is None


def test_trouble_that_gets_better_after_days_is_not_taken_for_usual() -> None:
    [fire] = fires((7 * DAY, 0.02), (2 * DAY, 0.3), (DAY, 0.02), rate=60, seed="better")
    assert fire.cleared is not None
    assert not fire.is_usual


def put_by(detector: ChangeDetector) -> ChangeDetector:
    """Write a detector down and read it again, as the evaluator does every minute."""
    state, learned = json.loads(json.dumps([detector.state(), asdict(detector.learned)]))
    return ChangeDetector.restore(state, Learned.read(learned), detector.fires)


@pytest.mark.slow
def test_a_detector_that_is_put_by_every_minute_says_what_one_in_memory_does() -> None:
    whole, kept, random = ChangeDetector(), ChangeDetector(), Random("put by")
    for minute in range(30 * 60):
        share = 0.4 if 1200 <= minute < 1320 else 0.03
        failed = sum(random.random() < share for _ in range(2))
        told = whole.feed(minute * 60.0, 2, failed), kept.feed(minute * 60.0, 2, failed)
        assert told[0] == told[1]
        kept = put_by(kept)
    assert asdict(kept.learned) == asdict(whole.learned)
    assert kept.evidence == whole.evidence


@pytest.mark.parametrize("base", [0.0, 0.01])
@pytest.mark.parametrize("raised", [0.3, 0.65, 0.8, 1.0])
def test_a_clean_series_of_an_hour_that_begins_to_fail_fires_within_minutes(
    base: float, raised: float
) -> None:
    random, detector = Random(f"{base} {raised}"), ChangeDetector()
    for minute in range(70):
        share = raised if minute >= 60 else base
        fire = detector.feed(minute * 60.0, 30, sum(random.random() < share for _ in range(30)))
        assert (fire is None) or minute >= 60
    assert detector.fire
    assert detector.fire.onset.low <= 61 * 60.0


def test_a_new_series_that_always_failed_raises_nothing_and_has_its_own_baseline() -> None:
    random, detector = Random("new"), ChangeDetector(48)
    for minute in range(3 * 1440):
        detector.feed(minute * 60.0, 1, int(random.random() < 0.11))
        assert detector.fire is None
    assert detector.baseline == pytest.approx(0.11, abs=0.02)


def test_nothing_is_told_as_the_baseline_of_a_series_that_was_never_seen_well() -> None:
    detector = ChangeDetector()
    for minute in range(10):
        detector.feed(minute * 60.0, 1, 0)
    assert detector.baseline is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_restless_hours_raise_less_than_their_rates_would(seed: int) -> None:
    random, detector = Random(f"restless {seed}"), ChangeDetector(48)
    at, fires = 0.0, 0
    for _ in range(14 * 24):
        rate = 0.03 * random.lognormvariate(-0.18, 0.6)
        for _ in range(60):
            at += 60.0
            fire = detector.feed(at, 1, int(random.random() < rate))
            fires += fire is not None and fire.cleared is None
    assert fires <= 1


def test_the_onset_is_never_before_the_first_call() -> None:
    begin, detector = 40 * DAY + 7 * 60.0, ChangeDetector()
    for minute in range(120):
        detector.feed(begin + minute * 60.0, 5, 0 if minute < 40 else 4)
    assert detector.fire
    onset = detector.fire.onset
    assert begin < onset.low <= onset.at <= onset.high
    assert abs(onset.at - begin - 40 * 60.0) < 120


def test_gaps_between_calls_widen_the_interval_of_the_onset() -> None:
    detector = ChangeDetector()
    for call in range(400):
        detector.feed(call * HOUR / 2, 1, int(call >= 380))
        if detector.fire:
            break
    assert detector.fire
    assert detector.fire.onset.high - detector.fire.onset.low > HOUR / 4


def test_a_rhythm_of_the_project_is_lent_to_a_series_that_is_new() -> None:
    project, random = ProjectDetectors(6), Random("rhythm")
    for hour in range(14 * 24):
        share = 0.12 if hour % 24 < 4 else 0.02
        for place in range(6):
            if place < 5 or hour >= 10 * 24 + 12:
                failed = sum(random.random() < share for _ in range(60))
                project.feed(place, hour * HOUR, 60, failed, HOUR)
        assert project[5].fire is None


@pytest.mark.slow
def test_days_that_are_worse_for_all_series_raise_little_and_an_outage_of_all_does() -> None:
    project, random, raised = ProjectDetectors(20), Random("days"), 0
    for hour in range(4 * 24 + 1):
        share = 0.5 if hour == 4 * 24 else 0.05 * (1.5 if 60 <= hour < 90 else 1.0)
        for minute in range(60):
            for place in range(20):
                failed = sum(random.random() < share for _ in range(5))
                fire = project.feed(place, hour * HOUR + minute * 60.0, 5, failed)
                raised += fire is not None and fire.cleared is None and hour < 4 * 24
    assert raised <= 5
    assert all(project[place].fire for place in range(20))


def test_an_alarm_of_an_earlier_release_goes_on_until_the_calls_are_well() -> None:
    detector, random = ChangeDetector(), Random("kept")
    for minute in range(2 * 1440):
        detector.feed(minute * 60.0, 2, sum(random.random() < 0.03 for _ in range(2)))
    detector.keep_firing(2 * DAY - 600, 2 * DAY - 1200)
    assert detector.fire == Fire(2 * DAY - 600, Onset(*[2 * DAY - 1200] * 3))
    for minute in range(240):
        detector.feed(2 * DAY + minute * 60.0, 2, 0)
    assert detector.fire is None
