"""The onset as one could tell it who knows what is hit, and both rates: what few calls allow."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import accumulate
from math import exp, log

from agents.demo.drawn_runs import DrawnRun
from bench.verdict_fourth.projects import HIGHEST, Effect
from bench.verdict_fourth.stories import FourthCase

MINUTES = 24 * 60
MINUTE = timedelta(minutes=1)
LEAST = 0.001


def oracle_onset(case: FourthCase, close: timedelta) -> datetime | None:
    """Return the minute of the last day around which, as closely, the onset is likeliest to lie.

    A version that is new is known by its first call.
    """
    effects = [effect for one in case.script.happenings for effect in one.effects]
    if not effects:
        return None
    effect, *others = effects
    begin = max([case.now - MINUTES * MINUTE, *(one.end for one in others)])
    hit = [run for run in case.runs() if run.at >= begin and effect.touches(run.place)]
    if any(one.shifts for one in case.script.happenings):
        return hit[0].at
    gains = [0.0] * (MINUTES + 1)
    for run in hit:
        gains[(run.at - begin) // MINUTE] += sum(_likelier(case, effect, run))
    # How much likelier it is that it began with a minute than that it never did.
    since = [*accumulate(reversed(gains))][::-1]
    most = max(since)
    sums = [0.0, *accumulate(exp(gain - most) for gain in since)]
    reach = close // MINUTE
    ends = [
        (sums[min(at + reach, MINUTES)] - sums[max(at - reach, 0)], at) for at in range(MINUTES)
    ]
    return begin + max(ends)[1] * MINUTE


def _likelier(case: FourthCase, effect: Effect, run: DrawnRun) -> Iterator[float]:
    """Yield how much likelier (log) each call is after the onset than before it."""
    (kind, more), *_ = effect.shares.items()
    before = max(case.project.shares_at(run.place).get(kind, 0.0), LEAST)
    after = min(before + more, HIGHEST)
    for call in run.calls:
        is_hit = call is not None and (call == kind or case.script.without_calls)
        yield log(after / before) if is_hit else log((1 - after) / (1 - before))
