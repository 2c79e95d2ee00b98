"""`python -m bench.verdict`: 120 incidents from a seed, and what the verdict makes of them.

Every incident is a week of runs of ten kinds and many shapes. By default its events pass
the door, are folded into rollups of an embedded database, and `verdict_of` is asked, as
GET /api/v1/verdict asks it. With --quick the same runs are counted in memory.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles

from agents.core.demo.troubles.drawing import Incident, make_incident
from agents.core.demo.troubles.kinds import KINDS
from bench.drawn_counts import DrawnCounts
from bench.verdict_pipeline import asking
from diagnostics.core.verdict.cause import Finding
from diagnostics.core.verdict.judging import judge
from diagnostics.core.verdict.suspects import Cause

ABSTAINS = (Cause.MIXED, Cause.NOT_ENOUGH_DATA)
CLOSE = timedelta(minutes=25)
START = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)

Asked = tuple[Finding, datetime | None]
Ask = Callable[[Incident], Asked]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found out about one incident."""

    incident: Incident
    finding: Finding
    since: datetime | None

    @property
    def outcome(self) -> str:
        """Right, abstains, or confidently wrong."""
        return outcome_of(self.incident, self.finding)

    @property
    def said(self) -> str:
        """The cause it named."""
        return self.finding.cause.value if self.finding.cause else "ok"

    @property
    def error(self) -> timedelta | None:
        """How far off the onset is, where there was one and it was told."""
        if self.since is None or self.incident.since is None:
            return None
        return abs(self.since - self.incident.since)


def outcome_of(incident: Incident, found: Finding) -> str:
    """Say whether a finding is right, abstains, or is confidently wrong."""
    truth = incident.trouble
    if found.cause is truth.cause and (not truth.value or found.value == truth.value):
        return "right"
    return "abstains" if found.cause in ABSTAINS else "wrong"


def incidents(seed: int, each: int) -> Iterator[Incident]:
    """Make so many incidents of each kind, each at a time of its own."""
    for kind in KINDS:
        for number in range(each):
            at = START + timedelta(minutes=(37 * seed + 131) * number)
            yield make_incident(kind, seed * 1_000 + number, at)


def ask_quickly(incident: Incident) -> Asked:
    """Ask counts in memory."""
    judged = judge(DrawnCounts.of(incident))
    return judged.finding, judged.since


def report(answers: Sequence[Answer]) -> Iterator[str]:
    """Write the confusion matrix, the onset errors and the shares."""
    columns = [*(cause.value for cause in Cause), "ok"]
    yield f"{'truth':16} right  " + " ".join(f"{name[:11]:>11}" for name in columns)
    for kind in KINDS:
        mine = [answer for answer in answers if answer.incident.kind == kind]
        said = Counter(answer.said for answer in mine)
        right = sum(answer.outcome == "right" for answer in mine)
        row = " ".join(f"{said[name] or '.':>11}" for name in columns)
        yield f"{kind:16} {right:2d}/{len(mine):2d}  {row}"
    yield from _onsets(answers)
    total = Counter(answer.outcome for answer in answers)
    made = len(answers)
    yield (
        f"right {total['right'] / made:.1%} (goal >= 90 %), "
        f"abstains {total['abstains'] / made:.1%}, "
        f"confidently wrong {total['wrong'] / made:.1%} (goal <= 5 %) of {made}"
    )


def _onsets(answers: Sequence[Answer]) -> Iterator[str]:
    errors = [answer.error for answer in answers if answer.error is not None]
    if len(errors) < 2:
        return
    minutes = sorted(error.total_seconds() / 60 for error in errors)
    within = sum(error <= CLOSE for error in errors) / len(errors)
    yield (
        f"since: {len(minutes)} told, off by {median(minutes):.0f} min (median), "
        f"{quantiles(minutes, n=10)[-1]:.0f} min (p90), {within:.1%} within 25 min"
    )
    told = [a for a in answers if a.error is not None and a.incident.trouble.top_kind]
    right = sum(a.finding.top_kind == a.incident.trouble.top_kind for a in told)
    yield f"top kind right {right / max(len(told), 1):.1%} of {len(told)}"


def main() -> int:
    """Ask about every incident and print what came of it."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.verdict", description=__doc__
    )
    parser.add_argument("--each", type=int, default=12, help="incidents of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="count in memory")
    options = parser.parse_args()
    made = incidents(options.seed, options.each)
    ask_all = _ask_quickly if options.quick else _ask_pipeline
    answers = ask_all(made)
    sys.stdout.write("\n".join(report(answers)) + "\n")
    return 0


def _ask_quickly(made: Iterator[Incident]) -> list[Answer]:
    return [Answer(one, *ask_quickly(one)) for one in made]


def _ask_pipeline(made: Iterator[Incident]) -> list[Answer]:
    with asking() as ask:
        return [Answer(one, *ask(one)) for one in made]


if __name__ == "__main__":
    sys.exit(main())
