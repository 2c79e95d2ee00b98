"""`python -m bench.alerts`: how often detectors cry wolf, and how late they see a wolf.

Every scenario is healthy for two weeks and then degraded for eight hours. Printed beside
each other, for the detectors and for the rules most people write first (`change` for a series
that is alone in its project, one of 48, and all of a row's as one project): false fires in a
week of one series, median delay and onset error in minutes, and missed degradations.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from statistics import median

from bench.alert_scenarios import DAY, HEALTHY, WEEK, Scenario
from bench.alert_stories import print_stories
from diagnostics.analysis.detectors.change_detector import Fire
from diagnostics.analysis.detectors.replay import Call, CallLog, Detector, replay, replay_together

RATES = (12, 30, 60, 300, 600)
HEALTHY_WEEKS = 2
BAD_SECONDS = 8 * 3600
LIMIT = 0.05
Raise = Callable[[Iterable[Call]], Sequence[Fire]]


@dataclass(slots=True)
class Score:
    """What one detector did over many seeds."""

    false_fires: int = 0
    weeks: float = 0.0
    missed: int = 0
    delays: list[float] = field(default_factory=list)
    onset_errors: list[float] = field(default_factory=list)

    def add(self, scenario: Scenario, fires: Sequence[Fire]) -> None:
        """Count the fires of a scenario; one that was on before is no detection."""
        self.weeks += scenario.bad_at / WEEK
        self.false_fires += sum(fire.at < scenario.bad_at for fire in fires)
        found = [fire for fire in fires if fire.at >= scenario.bad_at]
        if not found:
            self.missed += 1
            return
        self.delays.append((found[0].at - scenario.bad_at) / 60)
        self.onset_errors.append(abs(found[0].onset - scenario.bad_at) / 60)

    def cells(self) -> str:
        """Write it in a table's cells."""
        late = f"{median(self.delays):6.1f}" if self.delays else "     -"
        onset = f"{median(self.onset_errors):6.1f}" if self.onset_errors else "     -"
        weekly = self.false_fires / self.weeks
        return f"{weekly:7.2f} {late} {onset} {self.missed:3d}"


def naive(seconds: float, least_calls: int, least_failed: int, calls: Iterable[Call]) -> list[Fire]:
    """Fire as the first rule that comes to mind would; clear when it no longer holds."""
    tally, fires = CallLog(), list[Fire]()
    on = False
    for at, failed in calls:
        tally.add(at, failed)
        counts = tally.window(seconds)
        if least_failed:
            bad = counts.failed >= least_failed
        else:
            bad = counts.calls >= least_calls and counts.share > LIMIT
        if bad and not on:
            fires.append(Fire(at, tally.since(seconds)))
        on = bad
    return fires


TOGETHER = "change, all"
DETECTORS: dict[str, Raise] = {
    "change alone": partial(replay, Detector.CHANGE, series=1),
    "change of 48": partial(replay, Detector.CHANGE, series=48),
    "threshold": partial(replay, Detector.THRESHOLD),
    "ratio > 5 %": partial(naive, 900, 1, 0),
    "same, n >= 20": partial(naive, 900, 20, 0),
    "10 in 1 h": partial(naive, 3600, 0, 10),
}


def scenarios(
    shape: str, calls_an_hour: float, share: float, bad: float, seeds: int
) -> list[Scenario]:
    """Make the scenarios of one row."""
    made = []
    for seed in range(seeds):
        name = f"{shape} {calls_an_hour} {share} {seed}"
        bad_at = HEALTHY_WEEKS * WEEK + Random(name).random() * DAY  # noqa: S311
        end = bad_at + BAD_SECONDS
        made.append(Scenario(shape, calls_an_hour, share, bad, bad_at, end, name))
    return made


def simulate(names: Sequence[str], made: Sequence[Scenario]) -> dict[str, Score]:
    """Run every detector over every scenario."""
    found = {name: Score() for name in names}
    kept = [list(scenario.calls()) for scenario in made] if TOGETHER in names else []
    for scenario in made:
        calls = list(scenario.calls())
        for name in names:
            if name != TOGETHER:
                found[name].add(scenario, DETECTORS[name](calls))
    if kept:
        fires = replay_together(kept, [None] * len(kept))
        for scenario, raised in zip(made, fires, strict=True):
            found[TOGETHER].add(scenario, raised)
    return found


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.alerts", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few seeds, slow traffic")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--share", type=float, default=0.03, help="healthy failures")
    parser.add_argument("--bad", type=float, default=0.25, help="degraded failures")
    parser.add_argument("--only", nargs="*", default=[*DETECTORS, TOGETHER])
    parser.add_argument("--rates", nargs="*", type=int, default=RATES)
    parser.add_argument("--shapes", nargs="*", default=[*HEALTHY])
    parser.add_argument("--timeline", action="store_true", help="only these stories")
    options = parser.parse_args()
    if options.timeline:
        return print_stories(100)
    seeds, rates = (3, RATES[:2]) if options.quick else (options.seeds, options.rates)
    write = sys.stdout.write
    write("each: false fires a week, delay min, onset error min, missed\n")
    write(f"{'shape':12}{'calls/h':>8}  " + "  ".join(f"{n:^25}" for n in options.only))
    write("\n")
    for shape in options.shapes:
        for rate in rates:
            made = scenarios(shape, rate, options.share, options.bad, seeds)
            found = simulate(options.only, made)
            cells = "  ".join(found[name].cells() for name in options.only)
            write(f"{shape:12}{rate:8d}  {cells}\n")
            sys.stdout.flush()
    return 0 if options.quick else print_stories(100)


if __name__ == "__main__":
    sys.exit(main())
