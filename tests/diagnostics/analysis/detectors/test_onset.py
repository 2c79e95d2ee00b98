"""The posterior of an onset, on counts that are drawn from its own model."""

from random import Random

import pytest

from diagnostics.analysis.detectors.onset import (
    COVERED,
    HIGHEST,
    RISES,
    Background,
    CountedStretch,
    Onset,
    find_onset,
)
from diagnostics.analysis.statistics import wilson_interval

MINUTE = 60.0
RATE, MINUTES = 0.05, 120


def draw_rise(seed: int, calls: int = 4, every: int = 1) -> tuple[float, Onset]:
    """Draw minutes of calls whose rate rises at any moment, and find its onset."""
    random = Random(seed)
    odds = RATE / (1 - RATE) * random.choice(RISES)
    raised, rise = min(odds / (1 + odds), HIGHEST), random.random() * MINUTES * MINUTE
    stretches = []
    for minute in range(0, MINUTES + every, every):
        times = [(minute + random.random()) * MINUTE for _ in range(calls)]
        failed = sum(random.random() < (raised if at >= rise else RATE) for at in times)
        stretches.append(CountedStretch(minute * MINUTE, MINUTE, calls, failed))
    background = Background([RATE] * len(stretches), 0.01, 0.0, [(0.001, 0.0)])
    return rise, find_onset(stretches, background)


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 7])
def test_on_its_own_model_an_interval_holds_what_it_covers(every: int) -> None:
    found = [draw_rise(seed, every=every) for seed in range(150)]
    held = sum(onset.low <= rise <= onset.high for rise, onset in found)
    low, high = wilson_interval(held, len(found))
    assert low <= COVERED <= high


def test_an_outage_within_a_minute_begins_after_the_calls_that_went_well() -> None:
    counts = [(20, 0)] * 30 + [(20, 10)] + [(20, 20)] * 3
    stretches = [CountedStretch(at * MINUTE, MINUTE, *each) for at, each in enumerate(counts)]
    onset = find_onset(stretches, Background([0.01] * 34, 0.1, 0.0, [(0.01, 0.0)]))
    assert 30.1 * MINUTE < onset.at < 30.9 * MINUTE
    assert 30 * MINUTE <= onset.low < onset.high <= 31 * MINUTE


def test_hours_that_were_not_learned_tell_the_level_of_a_wide_stretch() -> None:
    hour = 60 * MINUTE
    counts = [(0, 18 * hour, 1100, 25), *((at * hour, hour, 60, 1) for at in range(18, 22))]
    stretches = [CountedStretch(*each) for each in counts]
    stretches += [
        CountedStretch(22 * hour + at * MINUTE, MINUTE, 1, at % 3 > 0) for at in range(30)
    ]
    # Only the first hour was learned, whose two failures tell little of the level.
    background = Background([0.007] * len(stretches), 1.5, hour, [(0.1, 0.0)])
    onset = find_onset(stretches, background)
    assert 21 * hour < onset.low < onset.high < 23 * hour


def test_a_rise_that_takes_minutes_begins_before_it_reaches_its_height() -> None:
    failed = [0] * 40 + [at // 4 for at in range(20)] + [5] * 20
    stretches = [CountedStretch(at * MINUTE, MINUTE, 10, bad) for at, bad in enumerate(failed)]
    onset = find_onset(stretches, Background([0.01] * len(failed), 0.1, 0.0, [(0.01, 0.0)]))
    assert 38 * MINUTE < onset.low < onset.at < 46 * MINUTE


def test_what_begins_between_two_nightly_batches_begins_with_the_second() -> None:
    day, batch = 24 * 60 * MINUTE, range(40)
    stretches = [
        CountedStretch(night * day + at * MINUTE, MINUTE, 3, night == 2 and at % 3 > 0)
        for night in range(3)
        for at in batch
    ]
    background = Background([0.01] * len(stretches), 0.1, 0.0, [(0.01, 0.0)])
    onset = find_onset(stretches, background)
    assert onset.low < 1.2 * day
    assert 2 * day <= onset.at <= onset.high < 2 * day + 5 * MINUTE
