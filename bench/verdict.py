"""`python -m bench.verdict`: 120 incidents from a seed, and what the verdict makes of them.

Every incident is a week of runs of ten kinds and many shapes. By default its events are
ingested, aggregated into rollups of an embedded database, and GET /api/v1/verdict is asked.
With --quick the same runs are counted in memory. --families draws counts of families that were
written from the documentation; half of them were not used in development (--held-out).
Seeds from 9000 on are run once, at the end of a change.
"""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from bench.drawn_counts import DrawnCounts, detect
from bench.verdict_cases import OK, Answer, Case, Said, report
from bench.verdict_families.running import run_families
from bench.verdict_pipeline import ask_pipeline, read_said
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.curves import VerdictRange
from diagnostics.verdict.judging import judge_range
from tests.incidents.drawn_runs import make_incident
from tests.incidents.scenarios import KINDS

START = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


def incidents(seed: int, each: int) -> Iterator[Case]:
    """Make so many incidents of each kind, each at a time of its own."""
    for kind in KINDS:
        for number in range(each):
            at = START + timedelta(minutes=(37 * seed + 131) * number)
            yield Case(make_incident(kind, seed * 1_000 + number, at))


def ask_quickly(case: Case) -> Said:
    """Ask counts in memory."""
    now = case.incident.now
    day = VerdictRange(now - timedelta(hours=24), now, now)
    runs = list(case.incident.runs())
    count = partial(DrawnCounts, runs, case.deploys())
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
    parser.add_argument("--families", action="store_true", help="counts of drawn families")
    parser.add_argument("--held-out", action="store_true", help="the families run once")
    parser.add_argument("--two-causes", action="store_true", help="families with two causes")
    options = parser.parse_args()
    if options.families:
        figures = run_families(
            options.seed,
            options.each,
            held_out=options.held_out,
            two=options.two_causes,
            misses=options.misses,
        )
        sys.stdout.writelines(f"{line}\n" for line in figures)
        return 0
    made = list(incidents(options.seed, options.each))
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


if __name__ == "__main__":
    sys.exit(main())
