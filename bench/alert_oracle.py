"""The best alarm there is: a sum (CUSUM) that knows the healthy rate and the bad one."""

from collections.abc import Iterable
from math import log

import numpy as np

from bench.alert_scenarios import Minute

STATES = 500
HIGHEST = 25.0


def alarm_of(calls_between_fires: float, usual: float, bad: float) -> float:
    """Return the alarm at which a healthy sum fires once in so many calls on average."""
    low, high = 1.0, HIGHEST
    for _ in range(16):
        middle = (low + high) / 2
        if run_length(middle, usual, bad) < calls_between_fires:
            low = middle
        else:
            high = middle
    return high


def run_length(alarm: float, usual: float, bad: float) -> float:
    """Return how many healthy calls a sum takes to its alarm on average.

    Brook and Evans (1972): a Markov chain over the height of the sum.
    """
    step = alarm / STATES
    chain = np.zeros((STATES, STATES))
    places = np.arange(STATES)
    for gain, chance in zip(gains(usual, bad), (usual, 1 - usual), strict=True):
        after = np.maximum(places * step + gain, 0) / step
        floor = after.astype(int)
        rest = after - floor
        for shift, part in ((0, 1 - rest), (1, rest)):
            inside = floor + shift < STATES
            np.add.at(chain, (places[inside], floor[inside] + shift), chance * part[inside])
    return float(np.linalg.solve(np.eye(STATES) - chain, np.ones(STATES))[0])


def gains(usual: float, bad: float) -> tuple[float, float]:
    """Return what a failed and a good call add to the sum."""
    return log(bad / usual), log((1 - bad) / (1 - usual))


def first_fire(
    minutes: Iterable[Minute], since: int, alarm: float, usual: float, bad: float
) -> int | None:
    """Return the first minute from `since` on at whose end it fires; earlier ones begin anew."""
    if_failed, if_good = gains(usual, bad)
    total = 0.0
    for at, calls, failed in minutes:
        total = max(0.0, total + failed * if_failed + (calls - failed) * if_good)
        if total >= alarm:
            if at >= since:
                return at
            total = 0.0
    return None
