"""`python -m bench.alerts`: how often alarms are false, and how late they are.

1. False fires of a new project of 48 healthy series, from its first minute on: of all rules
   out of the box together, and of the rules most people write first.
2. The minutes until a series that was healthy for two weeks fires after it has become worse,
   alone in its project and one of 48, beside an oracle: a sum that knows both rates and has
   the same budget of false fires, one a week and project. Then the minutes until it clears.
3. Stories of one trouble, and of a rate that flaps.
4. With `--only onsets`: how often the interval of an onset holds the rise, by kind of traffic.
5. With `--only evaluator`: the real evaluator on a throw-away PostgreSQL, minute by minute,
   and whether it fires and clears in the minutes in which the simulator does.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import merge
from statistics import median

from bench.alert_evaluator import placed, print_evaluator, weekly
from bench.alert_onsets import HELD_OUT, KINDS, print_onsets
from bench.alert_oracle import alarm_of, first_fire
from bench.alert_scenarios import DAY, SHAPES, WEEK, Minute, Scenario
from bench.alert_stories import print_stories
from bench.database import say
from diagnostics.analysis.detectors.replay import SERIES_OF_A_PROJECT, CallLog, ProjectDetectors

RATES = (12, 60, 300, 600)
LEVELS = (0.004, 0.01, 0.02, 0.03, 0.05, 0.08, 0.11)
"""Of the healthy series of a project, by turns."""
STEPS = {(0.02, 0.30): 400, (0.05, 0.15): 800}
"""Rates before and in a trouble, and how many calls it lasts: not until it is the usual level."""
LONGEST = 4_000
"""Minutes of a trouble at most: after three days it is the usual level."""
LIMIT = 0.05
STORIES = 200
FEW = 6
"""Series that the simple rules are tried on."""
LEARNED = 2 * WEEK


def false_fires(made: Sequence[Scenario]) -> list[int]:
    """Return the minutes in which the rule out of the box fires for a healthy project."""
    project = ProjectDetectors(len(made))
    told = merge(*(placed(place, one.calls()) for place, one in enumerate(made)))
    fed = ((at, project.feed(place, at * 60.0, calls, bad)) for at, place, calls, bad in told)
    return [at for at, fire in fed if fire is not None and fire.cleared is None]


def naive_fires(minutes: Iterable[Minute], seconds: float, least_failed: int) -> int:
    """Count the fires of a rule over one series: so many failed, or (0) a share above 5 %."""
    tally, fires, was_on = CallLog(), 0, False
    for at, calls, failed in minutes:
        tally.add(at * 60.0, failed, calls)
        counts = tally.window(seconds - 1)
        is_on = counts.failed >= least_failed if least_failed else counts.share > LIMIT
        fires += is_on and not was_on
        was_on = is_on
    return fires


@dataclass(slots=True)
class Delays:
    """Minutes from a change of the rate until it was seen; None where it was not."""

    ours: list[float | None] = field(default_factory=list)
    oracle: list[float | None] = field(default_factory=list)
    cleared: list[float | None] = field(default_factory=list)
    again: int = 0
    """Troubles that fired more than once."""

    def cells(self) -> str:
        """Write their medians, and how many were missed."""
        ours, oracle, cleared = map(_median, (self.ours, self.oracle, self.cleared))
        missed = sum(one is None for one in self.ours)
        return (
            f"{oracle:8.0f}{ours:8.0f}{ours / oracle:8.2f}{missed:4d}/{len(self.ours)}"
            f"{cleared:8.0f}{self.again:6d}"
        )


def _median(delays: Sequence[float | None]) -> float:
    return median(float("inf") if one is None else one for one in delays)


def delays_of(rate: float, step: tuple[float, float], series: int, seeds: Iterable[int]) -> Delays:
    """Let a healthy series become worse for long, and well again, once for each seed."""
    found, (usual, bad) = Delays(), step
    alarm = alarm_of(rate * 24 * 7 * series, usual, bad)
    lasts = min(round(STEPS[step] / rate * 60), LONGEST)
    for seed in seeds:
        begin = LEARNED + seed * 137 % DAY
        trouble = begin, begin + lasts
        one = Scenario("flat", rate, usual, begin + 3 * lasts, (seed, series), bad, trouble)
        minutes = list(one.calls())
        _add_ours(found, minutes, trouble, series)
        fired = first_fire(minutes, begin, alarm, usual, bad)
        within = fired is not None and fired < trouble[1]
        found.oracle.append(fired + 1 - begin if fired is not None and within else None)
    return found


def _add_ours(
    found: Delays, minutes: Iterable[Minute], trouble: tuple[int, int], series: int
) -> None:
    begin, end = trouble
    watch, fired, cleared, fires = ProjectDetectors(1, series), None, None, 0
    for at, calls, failed in minutes:
        told = watch.feed(0, at * 60.0, calls, failed)
        if told and told.cleared is None and begin <= at < end:
            fires += 1
            fired = fired or at + 1 - begin
        if told and told.cleared is not None and at >= end and cleared is None:
            cleared = at + 1 - end
    found.ours.append(fired)
    found.again += fires > 1
    if fired is not None:
        found.cleared.append(cleared)


def print_false_fires(
    shapes: Sequence[str], rates: Sequence[int], count: int, days: int, seed: int
) -> None:
    """Print the fires of new healthy projects over their first days."""
    minutes = days * DAY
    say(f"fires of {count} new projects of {SERIES_OF_A_PROJECT} healthy series in {days} days")
    say(f"{'shape':16}{'calls/h':>8}{'built in':>10}{'1st day':>9}{'> 5 %':>10}{'3 in 1 h':>10}")
    fires = 0
    for shape in shapes:
        for rate in rates:
            projects = [
                [
                    Scenario(
                        shape, rate, LEVELS[place % len(LEVELS)], minutes, (seed, project, place)
                    )
                    for place in range(SERIES_OF_A_PROJECT)
                ]
                for project in range(count)
            ]
            ours = [at for one in projects for at in false_fires(one)]
            fires += len(ours)
            first = sum(at < DAY for at in ours)
            some = [list(one.calls()) for one in projects[0][:FEW]]
            share, in_a_row = (
                sum(naive_fires(one, *rule) for one in some) * SERIES_OF_A_PROJECT // FEW
                for rule in ((900, 0), (3600, 3))
            )
            say(f"{shape:16}{rate:8d}{len(ours):10d}{first:9d}{share:10d}{in_a_row:10d}")
    say(weekly(fires, minutes * count * len(shapes) * len(rates)))


def print_delays(rates: Sequence[int], seeds: range) -> None:
    """Print how late alarms are, and their ends."""
    say(f"minutes until it fires, median of {len(seeds)} seeds")
    say(
        f"{'calls/h':>8}{'from':>6}{'to':>5}{'series':>8}  oracle    ours   ratio missed"
        "  clears again"
    )
    for step in STEPS:
        for series in (1, SERIES_OF_A_PROJECT):
            for rate in rates:
                told = delays_of(rate, step, series, seeds)
                say(f"{rate:8d}{step[0]:6.0%}{step[1]:5.0%}{series:8d}{told.cells()}")


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.alerts", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few seeds, slow traffic")
    parser.add_argument("--projects", type=int, default=3, help="healthy ones")
    parser.add_argument("--days", type=int, default=7, help="of each healthy project")
    parser.add_argument("--seeds", type=int, default=100, help="of delays; stories have 200")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rates", nargs="*", type=int, default=RATES)
    parser.add_argument("--shapes", nargs="*", default=SHAPES)
    parser.add_argument("--only", choices=["false", "delays", "stories", "onsets", "evaluator"])
    parser.add_argument("--held-out", action="store_true", help="onsets of the kinds run once")
    options = parser.parse_args()
    first = options.first_seed
    projects, count = (1, 5) if options.quick else (options.projects, options.seeds)
    rates, seeds = RATES[:1] if options.quick else options.rates, range(first, first + count)
    if options.only in (None, "false"):
        print_false_fires(options.shapes, rates, projects, options.days, first)
    if options.only in (None, "delays"):
        print_delays(rates, seeds)
    if options.only == "onsets":
        print_onsets(HELD_OUT if options.held_out else KINDS, seeds)
    if options.only == "evaluator":
        return print_evaluator(options.shapes, rates, first)
    if options.only == "stories" or not (options.only or options.quick):
        return print_stories(range(first, first + STORIES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
