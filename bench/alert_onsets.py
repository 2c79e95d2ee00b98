"""How often the stated 95 % interval of an onset holds the moment at which a rate rose.

Kinds of traffic are drawn by the minute, each seed with a past of its own and a rise at a moment
of its own, in the middle of a minute. Rises that were not seen have no onset. The kinds of
`HELD_OUT` were written down before the interval was last changed, and run once at its end.
"""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.random import default_rng

from bench.database import say
from diagnostics.analysis.detectors.change import MINUTE
from diagnostics.analysis.detectors.onset import Onset
from diagnostics.analysis.detectors.replay import SERIES_OF_A_PROJECT, ProjectDetectors
from diagnostics.analysis.statistics import wilson_interval

DAY = 1_440


class Kind(NamedTuple):
    """Traffic whose rate rises after some days, and how many hours the rise lasts at most."""

    name: str
    calls_an_hour: float
    share: float
    raised: float
    days: float
    hours: int
    has_rhythm: bool = False
    restless: float = 0.0
    noise_minutes: int = 60
    """How long a restless rate lasts."""
    busy_minutes: int = 60
    """Of each hour; the others have no call."""
    busy_hours: int = 24
    """Of each day."""
    ramp: int = 0
    """Minutes in which it rises."""
    weekend: float = 1.0
    """How many times as many calls fail on two days of seven."""
    repeated: float = 0.0
    """The share of failures after which the next call fails, too."""
    later: float = 0.0
    """What it rises to an hour after that; 0: to nothing more."""


KINDS = (
    Kind("4 an hour, 5 to 50 %", 4, 0.05, 0.5, 14, 48),
    Kind("6 an hour, 1 to 25 %", 6, 0.01, 0.25, 12, 72),
    Kind("12 an hour, 5 to 15 %", 12, 0.05, 0.15, 9, 72),
    Kind("60 an hour, 2 to 30 %", 60, 0.02, 0.3, 8, 8),
    Kind("60 an hour, 5 to 15 %", 60, 0.05, 0.15, 8, 30),
    Kind("300 an hour, 5 to 15 %", 300, 0.05, 0.15, 6, 20),
    Kind("600 an hour, 1 to 100 %", 600, 0.01, 1.0, 2, 1),
    Kind("rhythm, 4 to 12 %", 300, 0.04, 0.12, 8, 24, has_rhythm=True),
    Kind("restless hours, 3 to 20 %", 60, 0.03, 0.2, 9, 24, restless=0.6),
    Kind("young and restless, 3 to 30 %", 60, 0.03, 0.3, 0.5, 24, restless=0.6),
    Kind("8 minutes an hour, 3 to 30 %", 60, 0.03, 0.3, 8, 12, busy_minutes=8),
    Kind("a few hours old, 3 to 25 %", 60, 0.03, 0.25, 0.15, 12),
    Kind("within an hour, 3 to 30 %", 60, 0.03, 0.3, 8, 12, ramp=60),
    Kind("bad weekends, 2 to 10 %", 120, 0.02, 0.1, 9, 24, has_rhythm=True, weekend=1.8),
    Kind("by day only, 3 to 25 %", 60, 0.03, 0.25, 8, 36, busy_hours=10),
    Kind("restless quarters, 4 to 25 %", 120, 0.04, 0.25, 6, 24, restless=0.5, noise_minutes=15),
    Kind("failures in a row, 3 to 15 %", 90, 0.03, 0.15, 7, 24, repeated=0.4),
    Kind("3 to 12, then to 40 %", 60, 0.03, 0.12, 6, 24, later=0.4),
    Kind("30 a minute, an hour old, 1 to 6 %", 1_800, 0.01, 0.06, 0.04, 4),
)
HELD_OUT = (
    Kind("12 an hour, 2 to 60 %", 12, 0.02, 0.6, 10, 24),
    Kind("restless days, 4 to 25 %", 90, 0.04, 0.25, 9, 24, restless=0.5, noise_minutes=360),
    Kind("five hours a day, 3 to 30 %", 60, 0.03, 0.3, 7, 36, busy_hours=5),
    Kind("3 to 40, then to 15 %", 60, 0.03, 0.4, 6, 24, later=0.15),
    Kind("within 20 minutes, 2 to 20 %", 240, 0.02, 0.2, 5, 12, ramp=20),
    Kind("3 minutes an hour, 5 to 40 %", 100, 0.05, 0.4, 6, 24, busy_minutes=3),
    Kind("in a row, two days old, 6 to 30 %", 150, 0.06, 0.3, 2, 12, has_rhythm=True, repeated=0.3),
    Kind("40 a minute, 0.5 to 3 %", 2_400, 0.005, 0.03, 3, 8),
)


def draw(kind: Kind, seed: int) -> tuple[float, list[tuple[int, int, int]]]:
    """Return the minute (and its part) of the rise, and the minutes that have calls."""
    random = default_rng([seed, *kind.name.encode()])
    rise = (kind.days + random.random() * min(kind.days, 1.0)) * DAY
    at = np.arange(int(rise) + kind.hours * 60)
    busy, share = np.ones(len(at)), np.full(len(at), kind.share)
    if kind.has_rhythm:
        busy = 1 + 0.8 * np.sin(2 * np.pi * at / DAY - 2)
        share = share * (1 + 0.4 * np.cos(2 * np.pi * at / DAY - 1))
    # Minute 0 is that of the epoch, a Thursday.
    share = np.where(at // DAY % 7 // 2 == 1, share * kind.weekend, share)
    if kind.restless:
        parts = len(at) // kind.noise_minutes + 1
        each = random.lognormal(-(kind.restless**2) / 2, kind.restless, parts)
        share = np.minimum(share * np.repeat(each, kind.noise_minutes)[: len(at)], 0.95)
    busy = np.where(at % 60 < kind.busy_minutes, busy * 60 / kind.busy_minutes, 0.0)
    busy = np.where(at % DAY < kind.busy_hours * 60, busy * 24 / kind.busy_hours, 0.0)
    calls = random.poisson(kind.calls_an_hour / 60 * busy)
    raised = np.full(len(at), kind.raised)
    if kind.ramp:
        done = np.clip((at + 0.5 - rise) / kind.ramp, 0, 1)
        raised = share + (kind.raised - share) * done
    if kind.later:
        raised = np.where(at > rise + 60, kind.later, raised)
    early = random.binomial(calls, np.clip(rise - at, 0, 1))
    failed = random.binomial(early, share) + random.binomial(calls - early, raised)
    more = random.binomial(failed, kind.repeated)
    calls, failed = calls + more, failed + more
    told = np.nonzero(calls)[0]
    return rise, list(zip(told.tolist(), calls[told].tolist(), failed[told].tolist(), strict=True))


def onsets_of(rise: float, minutes: Iterable[tuple[int, int, int]]) -> tuple[Onset, Onset] | None:
    """Return the onset of the first alarm after a rise, as it fires and as it is known in the end.

    The series is one of many; None if it does not fire.
    """
    project, fired = ProjectDetectors(1, SERIES_OF_A_PROJECT), None
    for at, calls, failed in minutes:
        fire = project.feed(0, at * MINUTE, calls, failed)
        if fire is not None and fired is not None:
            break
        if fire is not None and fire.cleared is None and at >= int(rise):
            fired = fire
    return fired and (fired.onset, project[0].fires[-1].onset)


def print_onsets(kinds: Sequence[Kind], seeds: range) -> None:
    """Print, for each kind of traffic and for all, how many intervals hold the rise."""
    say(f"onsets of {len(seeds)} rises a kind; minutes are medians")
    columns = f"{'held':>9}{'Wilson':>16}{'early':>7}{'late':>6}{'width':>7}{'off':>6}"
    say(f"{'as it fires':36}{columns}   |{'in the end':>9}{columns[9:]}")
    totals = [_print_kind(kind, seeds) for kind in kinds]
    first, last, seen = (sum(column) for column in zip(*totals, strict=True))
    say(f"{'all':36}{_share(first, seen)}{'':26}   |{_share(last, seen)}")


def _print_kind(kind: Kind, seeds: range) -> tuple[int, int, int]:
    drawn = (draw(kind, seed) for seed in seeds)
    found = [(rise, onsets) for rise, made in drawn if (onsets := onsets_of(rise, made))]
    rises = [rise * MINUTE for rise, _ in found]
    columns, held = [], []
    for each in zip(*(onsets for _, onsets in found), strict=True):
        told = list(zip(rises, each, strict=True))
        early = sum(onset.high < rise for rise, onset in told)
        late = sum(onset.low > rise for rise, onset in told)
        width = median((onset.high - onset.low) / MINUTE for onset in each)
        off = median(abs(onset.at - rise) / MINUTE for rise, onset in told)
        held.append(len(told) - early - late)
        columns.append(f"{_share(held[-1], len(told))}{early:7d}{late:6d}{width:7.0f}{off:6.1f}")
    say(f"{kind.name:36}{'   |'.join(columns)}")
    return held[0], held[1], len(found)


def _share(held: int, seen: int) -> str:
    low, high = wilson_interval(held, seen)
    return f"{held:5d}/{seen:<4d}  {low:6.1%}-{high:6.1%}"
