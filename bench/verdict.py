"""`python -m bench.verdict`: 120 incidents from a seed, and what the verdict makes of them.

Every incident is a week of runs of ten kinds and many shapes. By default its events pass
the door, are folded into rollups of an embedded database, and GET /api/v1/verdict is asked.
With --quick the same runs are counted in memory. --fourth asks about causes that overlap or
lack a comparison, whose events are posted to the API. --families draws counts of families that
were written from the documentation; half of them were not used in development (--held-out).
Seeds from 9000 on are run once, at the end of a change.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from agents.demo.drawn_runs import DrawnIncident, DrawnRun, make_incident
from agents.demo.incident_scenarios import KINDS
from bench.drawn_counts import DrawnCounts, detect
from bench.verdict_cases import OK, Answer, Case, Said, Truth, report
from bench.verdict_families.running import run_families
from bench.verdict_fourth.counting import answer_from_counts
from bench.verdict_fourth.judging import confusion, miss, read_answer
from bench.verdict_fourth.judging import report as report_fourth
from bench.verdict_fourth.stories import fourth_cases
from bench.verdict_pipeline import ask_pipeline, read_said
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.curves import VerdictRange
from diagnostics.verdict.hypotheses import ReportedDeploy
from diagnostics.verdict.judging import judge_range

START = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DemoCase:
    """An incident as `load_demo --incident` makes them."""

    incident: DrawnIncident

    @property
    def kind(self) -> str:
        """What happens."""
        return self.incident.kind

    @property
    def now(self) -> datetime:
        """When it is asked."""
        return self.incident.now

    @property
    def truth(self) -> Truth:
        """What happened."""
        trouble = self.incident.trouble
        cause = trouble.cause.value if trouble.cause else OK
        return Truth(cause, trouble.value, trouble.top_kind, self.incident.since)

    def runs(self) -> Iterator[DrawnRun]:
        """Give every run, the same ones each time."""
        return self.incident.runs()

    def told(self) -> list[ReportedDeploy]:
        """Give the deploys as they were told."""
        return [
            ReportedDeploy(at, change.kind, change.version, change.source)
            for at, change in self.incident.changes
        ]


def incidents(seed: int, each: int) -> Iterator[DemoCase]:
    """Make so many incidents of each kind, each at a time of its own."""
    for kind in KINDS:
        for number in range(each):
            at = START + timedelta(minutes=(37 * seed + 131) * number)
            yield DemoCase(make_incident(kind, seed * 1_000 + number, at))


def ask_quickly(case: Case) -> Said:
    """Ask counts in memory."""
    day = VerdictRange(case.now - timedelta(hours=24), case.now, case.now)
    runs = list(case.runs())
    count = partial(DrawnCounts, runs, case.told())
    judged, *others = judge_range(day, count, detect(runs))
    found = judged.finding
    if others:
        return Said(Cause.MIXED.value, "", found.top_kind, judged.since)
    cause = found.cause.value if found.cause else OK
    return Said(cause, found.value, found.top_kind, judged.since)


def main() -> int:
    """Ask about every incident and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m bench.verdict", description=__doc__)
    parser.add_argument("--each", type=int, default=12, help="incidents of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="count in memory")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--misses", action="store_true", help="name every miss")
    parser.add_argument("--fourth", action="store_true", help="overlapping causes, too")
    parser.add_argument("--families", action="store_true", help="counts of drawn families")
    parser.add_argument("--held-out", action="store_true", help="the families run once")
    options = parser.parse_args()
    if options.families:
        figures = run_families(
            options.seed, options.each, held_out=options.held_out, misses=options.misses
        )
        sys.stdout.writelines(f"{line}\n" for line in figures)
        return 0
    if options.fourth:
        return ask_fourth(options)
    made: list[Case] = list(incidents(options.seed, options.each))
    if options.quick:
        said = [ask_quickly(case) for case in made]
    else:
        said = [read_said(told) for told in ask_pipeline(made, options.workers)]
    answers = [
        Answer(number, case.kind, case.truth, one)
        for number, (case, one) in enumerate(zip(made, said, strict=True))
    ]
    lines = [answer.miss for answer in answers if answer.is_missed]
    lines = [*(lines if options.misses else ()), *report(answers)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def ask_fourth(options: argparse.Namespace) -> int:
    """Ask about every case of the fourth making and print the tables."""
    cases = list(fourth_cases(options.seed, options.each))
    if options.quick:
        told = [answer_from_counts(case) for case in cases]
    else:
        told = ask_pipeline(cases, options.workers)
    answers = [read_answer(case, answer) for case, answer in zip(cases, told, strict=True)]
    misses = [miss(answer) for answer in answers if not answer.is_proper]
    lines = [*(misses if options.misses else ()), *confusion(answers), *report_fourth(answers)]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
