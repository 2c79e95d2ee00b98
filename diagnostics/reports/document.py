"""What a report says, as figures and names: kept as JSON, worded by `rendering`.

Names come from outside: whoever makes a document gives them cleaned (`name_of`). Shares are
not kept, only what they are made of. Times are instants; addresses are paths.
"""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict

from diagnostics.analysis.series import MINIMUM_RUNS, SeriesState, judge
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.figures import percent, plural, points, shorten
from diagnostics.outbound.mail_headers import clean_header, clean_subject

LONGEST_NAME = 60
LONGEST_TEXT = 240


class ReportFigures(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelFigures(ReportFigures):
    """Runs of one model, or of all, in the period, the one before, and what is usual."""

    name: str
    url: str
    runs: int
    degraded: int
    ok_first: int = 0
    repaired: int = 0
    retry_tokens: int = 0
    retry_ms: int = 0
    runs_before: int = 0
    degraded_before: int = 0
    runs_usual: int = 0
    degraded_usual: int = 0
    # (runs, degraded) in equal slots, oldest first.
    curve: list[tuple[int, int]] = []


class Degradation(ReportFigures):
    """What got worse, since when, and what it comes from."""

    subject: str
    since: datetime
    bad: int
    total: int
    noun: str
    baseline: float | None
    kind: str
    cause: str


class GroupFigures(ReportFigures):
    """One kind of failure that began, came back or was resolved."""

    state: Literal["new", "regressed", "resolved"]
    text: str
    seen: int
    url: str


class AdviceFigures(ReportFigures):
    """One thing to change, and why."""

    text: str
    evidence: str
    url: str


class IncidentFigures(ReportFigures):
    """Incidents that fired in the period; medians of those that got so far, in seconds."""

    count: int
    open: int
    acknowledged: int
    acknowledge_seconds: float | None
    clear_seconds: float | None
    judged: int
    false_alarms: int
    url: str


class QualityFigures(ReportFigures):
    """How far the figures can be trusted."""

    events: int
    rejected: int
    duplicates: int
    sources: int
    silent: list[str] = []
    # They send failures and never a success: their shares mean nothing.
    without_successes: list[str] = []
    url: str


class ReportDocument(ReportFigures):
    """One report."""

    version: Literal[1] = 1
    project: str
    title: str
    cadence: str
    zone: str
    since: datetime
    until: datetime
    first: date
    last: date
    slot_seconds: int
    url: str
    total: ModelFigures
    models: list[ModelFigures]
    degradation: Degradation | None = None
    groups: list[GroupFigures] = []
    more_groups: int = 0
    advice: list[AdviceFigures] = []
    incidents: IncidentFigures | None = None
    quality: QualityFigures
    # What could not be looked at, in words of ours.
    remarks: list[str] = []


def name_of(text: str | None, most: int = LONGEST_NAME) -> str:
    """Return a name of somebody else's making as one line; nothing is `unknown`."""
    return shorten(clean_header(text or ""), most) or "unknown"


class ModelStatus(StrEnum):
    """How a model stands, worst first."""

    DEGRADING = "degrading"
    WATCH = "to watch"
    OK = "within baseline"
    FEW = "few runs"


ORDER = {standing: place for place, standing in enumerate(ModelStatus)}
BAD = (ModelStatus.DEGRADING, ModelStatus.WATCH)


def standing_of(model: ModelFigures) -> ModelStatus:
    """Judge a model by the rules of the Now page; few runs are judged by nobody."""
    if model.runs < MINIMUM_RUNS:
        return ModelStatus.FEW
    usual = share_of(model.degraded_usual, model.runs_usual)
    state = judge(model.degraded, model.runs, usual)
    if state is SeriesState.DEGRADING:
        return ModelStatus.DEGRADING
    return ModelStatus.WATCH if state is SeriesState.WATCH else ModelStatus.OK


def worst_first(models: Iterable[ModelFigures]) -> list[ModelFigures]:
    """Order models by standing, then by the lower bound of their share, then by runs."""
    return sorted(models, key=_rank)


def _rank(model: ModelFigures) -> tuple[int, float, int]:
    low, _ = wilson_interval(model.degraded, model.runs)
    return ORDER[standing_of(model)], -low if model.runs else 0.0, -model.runs


def share_of(part: int, whole: int) -> float | None:
    """Return a share, None of nothing."""
    return part / whole if whole else None


def change_of(model: ModelFigures) -> float | None:
    """Return the difference to the period before, None where one of them is empty."""
    now = share_of(model.degraded, model.runs)
    before = share_of(model.degraded_before, model.runs_before)
    return None if now is None or before is None else now - before


def has_news(document: ReportDocument) -> bool:
    """Whether a report says more than that all is as before."""
    incidents, quality = document.incidents, document.quality
    return bool(
        document.degradation
        or document.groups
        or (incidents and incidents.count)
        or quality.silent
        or (document.total.runs_before and not document.total.runs)
        or any(standing_of(model) in BAD for model in document.models)
    )


CADENCE_WORDS = {"weekdays": "daily"}
WEEK = timedelta(days=7)
LONGEST_TITLE = 60
LONGEST_MODEL = 48


def subject_of(document: ReportDocument) -> str:
    """Write the subject: what, how often, how bad, which model, since when."""
    word = CADENCE_WORDS.get(document.cadence, document.cadence)
    return clean_subject(f"{document.title[:LONGEST_TITLE]} {word}: {_verdict(document)}")


def moment_of(at: datetime, document: ReportDocument) -> str:
    """Write a time of the period in its zone: `Thu 14:30`, or `12 Nov 14:30` of long ones."""
    local = at.astimezone(ZoneInfo(document.zone))
    if document.until - at <= WEEK:
        return f"{local:%a %H:%M}"
    return f"{local.day} {local:%b %H:%M}"


def _verdict(document: ReportDocument) -> str:
    total = document.total
    if not total.runs:
        return "no runs"
    if total.runs < MINIMUM_RUNS:
        return f"{plural(total.runs, 'run')}, too few to judge"
    share = percent(share_of(total.degraded, total.runs))
    change = change_of(total)
    against = "" if change is None else f" ({points(change)})"
    return f"degraded {share}{against}, {_whose(document)}"


def _whose(document: ReportDocument) -> str:
    begun = document.degradation
    if begun:
        name = begun.subject.rpartition("/")[2] or begun.subject
        return f"{name[:LONGEST_MODEL]} since {moment_of(begun.since, document)}"
    worst = worst_first(document.models)[0]
    name = worst.name.rpartition("/")[2][:LONGEST_MODEL]
    match standing_of(worst):
        case ModelStatus.DEGRADING:
            return f"worst {name}"
        case ModelStatus.WATCH:
            return f"watch {name}"
    judged = [m for m in document.models if standing_of(m) is ModelStatus.OK]
    if not judged:
        return "no model with enough runs"
    return (
        f"{judged[0].name.rpartition('/')[2][:LONGEST_MODEL]} within baseline"
        if len(judged) == 1
        else f"all {len(judged)} models within baseline"
    )
