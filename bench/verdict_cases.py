"""A case of the verdict's benchmarks: runs with a known truth, and what was said of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median, quantiles

from diagnostics.verdict.cause import Cause
from diagnostics.verdict.hypotheses import ReportedDeploy
from tests.incidents.drawn_runs import DrawnIncident

ABSTAINS = frozenset({Cause.MIXED.value, Cause.NOT_ENOUGH_DATA.value})
CLOSE = timedelta(minutes=25)
OK = "ok"
COLUMNS = (*(cause.value for cause in Cause), OK)


@dataclass(frozen=True, slots=True)
class Truth:
    """What a verdict must find out; an empty value or kind is not asked for."""

    cause: str
    value: str = ""
    top_kind: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A drawn incident."""

    incident: DrawnIncident

    @property
    def kind(self) -> str:
        return self.incident.kind

    @property
    def truth(self) -> Truth:
        trouble = self.incident.trouble
        cause = trouble.cause.value if trouble.cause else OK
        return Truth(cause, trouble.value, trouble.top_kind, self.incident.since)

    def deploys(self) -> list[ReportedDeploy]:
        return [ReportedDeploy(at, change.kind) for at, change in self.incident.changes]


@dataclass(frozen=True, slots=True)
class Said:
    """What was answered: the fields of GET /api/v1/verdict that are judged."""

    cause: str
    value: str
    top_kind: str
    since: datetime | None
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said of one case."""

    number: int
    kind: str
    truth: Truth
    said: Said

    @property
    def outcome(self) -> str:
        """Right, abstains, or confidently wrong."""
        named = self.truth.value in {"", self.said.value}
        if self.said.cause == self.truth.cause and named:
            return "right"
        return "abstains" if self.said.cause in ABSTAINS else "wrong"

    @property
    def error(self) -> timedelta | None:
        """How far off the onset is, where there was one and it was told."""
        if self.said.since is None or self.truth.since is None:
            return None
        return abs(self.said.since - self.truth.since)

    @property
    def is_missed(self) -> bool:
        """Whether the cause, or the onset, is not the true one."""
        return self.outcome != "right" or (self.error or timedelta(0)) > CLOSE

    @property
    def miss(self) -> str:
        """In one line, what was said instead of the truth."""
        truth, said = self.truth, self.said
        return (
            f"{self.number} {self.kind}: {truth.cause} {truth.value} since {truth.since}"
            f" -> {said.cause} {said.value} since {said.since}"
        )


def report(answers: Sequence[Answer]) -> Iterator[str]:
    """Write the confusion matrix, the onset errors and the shares."""
    kinds = list(dict.fromkeys(answer.kind for answer in answers))
    wide = max(map(len, kinds))
    yield f"{'truth':{wide}} right  " + " ".join(f"{n[:11]:>11}" for n in COLUMNS)
    for kind in kinds:
        mine = [answer for answer in answers if answer.kind == kind]
        said = Counter(answer.said.cause for answer in mine)
        right = sum(answer.outcome == "right" for answer in mine)
        row = " ".join(f"{said[name] or '.':>11}" for name in COLUMNS)
        yield f"{kind:{wide}} {right:2d}/{len(mine):2d}  {row}"
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
    told = [a for a in answers if a.error is not None and a.truth.top_kind]
    right = sum(a.said.top_kind == a.truth.top_kind for a in told)
    yield f"top kind right {right / max(len(told), 1):.1%} of {len(told)}"
