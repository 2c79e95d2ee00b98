"""The content of a report as figures and names: stored as JSON, worded by `rendering`.

Names come from outside and must be cleaned (`name_of`) by the caller. Shares are not stored,
only their counts. Times are instants; addresses are paths.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict

from diagnostics.analysis.series import ORDER, SeriesState
from diagnostics.analysis.statistics import LEAST_TRIALS, wilson_interval
from diagnostics.figures import shorten
from diagnostics.outbound.mail_headers import clean_header

LONGEST_NAME = 60
LONGEST_TEXT = 240


class ReportFigures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelFigures(ReportFigures):
    """Runs of one model, or of all, in the period, the one before, and the baseline."""

    name: str
    url: str
    runs: int
    degraded: int
    ok_first: int = 0
    repaired: int = 0
    # Answers that nothing checked.
    unchecked: int = 0
    # Attempts at the model, whatever model ended the run; documents of 0.1.0 have none.
    first_attempts: int | None = None
    calls: int = 0
    calls_failed: int = 0
    # By the caller, in none of the rates.
    cancelled: int = 0
    retry_tokens: int = 0
    retry_ms: int = 0
    runs_before: int = 0
    degraded_before: int = 0
    runs_usual: int = 0
    degraded_usual: int = 0
    # The worst of its series when the period ended; documents of 0.1.0 have none.
    state_at_end: SeriesState | None = None
    # Money spent on retries; None without a price.
    retry_usd: Decimal | None = None
    # The number of incidents in the period that involve it.
    incidents: int = 0
    # The onset of its degradation by the verdict, if any.
    since: datetime | None = None
    # (runs, degraded) in equal slots, oldest first.
    curve: list[tuple[int, int]] = []

    @property
    def checked(self) -> int:
        if self.first_attempts is None:
            return self.ok_first + self.repaired + self.degraded
        return self.first_attempts


class Degradation(ReportFigures):
    subject: str
    since: datetime
    bad: int
    total: int
    noun: str
    baseline: float | None
    kind: str
    # Whether most failures are of this kind.
    is_mostly: bool = True
    cause: str


GroupNews = Literal["new", "regressed", "resolved"]


class GroupFigures(ReportFigures):
    state: GroupNews
    text: str
    seen: int
    url: str


class AdviceFigures(ReportFigures):
    text: str
    evidence: str
    url: str


class IncidentInPeriod(ReportFigures):
    """One incident: title, cause, and how it ended (empty while it is open)."""

    title: str
    severity: str
    cause: str
    onset: datetime
    ended_at: datetime | None = None
    ending: str = ""
    url: str


class IncidentFigures(ReportFigures):
    """Incidents of the period, with medians in seconds, and those that are open now."""

    count: int
    open: int
    acknowledged: int
    acknowledge_seconds: float | None
    clear_seconds: float | None
    judged: int
    false_alarms: int
    entries: list[IncidentInPeriod] = []
    url: str


class QualityFigures(ReportFigures):
    events: int
    rejected: int
    duplicates: int
    sources: int
    silent: list[str] = []
    # They send failures and never a success, so their rates are meaningless.
    without_successes: list[str] = []
    url: str


class ReportDocument(ReportFigures):
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
    # Further degradations with their own causes.
    others: list[Degradation] = []
    groups: list[GroupFigures] = []
    more_groups: int = 0
    advice: list[AdviceFigures] = []
    incidents: IncidentFigures | None = None
    quality: QualityFigures
    # Notes on what could not be counted.
    remarks: list[str] = []


def name_of(text: str | None, limit: int = LONGEST_NAME) -> str:
    """Return an external name as one line; `unknown` if it is empty."""
    return shorten(clean_header(text or ""), limit) or "unknown"


BAD = (SeriesState.DEGRADING, SeriesState.WATCH)


def status_of(model: ModelFigures) -> SeriesState:
    """Return how a model stands: degrading in an incident, else as its series do at the end."""
    if model.since is not None:
        return SeriesState.DEGRADING
    if model.state_at_end in {None, SeriesState.LOW_VOLUME, SeriesState.NO_DATA}:
        # Of a longer period there may be enough.
        few = SeriesState.LOW_VOLUME if model.runs else SeriesState.NO_DATA
        return SeriesState.OK if model.runs >= LEAST_TRIALS else few
    return model.state_at_end or SeriesState.NO_DATA


def worst_first(models: Iterable[ModelFigures]) -> list[ModelFigures]:
    """Return models sorted by state and incidents, then by the lower bound of their share."""

    def rank(model: ModelFigures) -> tuple[bool, int, bool, float, int]:
        low = wilson_interval(model.degraded, model.runs)[0] if model.runs else 0.0
        standing = status_of(model)
        is_calm = standing not in BAD and not model.incidents
        return is_calm, ORDER[standing], not model.incidents, -low, -model.runs

    return sorted(models, key=rank)


def add_up(models: Sequence[ModelFigures], url: str) -> ModelFigures:
    """Return the figures of all models together."""
    apart = {"name", "url", "curve", "state_at_end", "since", "incidents", "retry_usd"}
    fields = [name for name in ModelFigures.model_fields if name not in apart]
    sums = {name: sum(getattr(model, name) for model in models) for name in fields}
    curves = [model.curve for model in models if model.curve]
    added = [
        (sum(runs for runs, _ in slot), sum(degraded for _, degraded in slot))
        for slot in zip(*curves, strict=True)
    ]
    known = [model.retry_usd for model in models if model.retry_usd is not None]
    money = sum(known, Decimal(0)) if known else None
    return ModelFigures(name="all models", url=url, curve=added, retry_usd=money, **sums)


def share_of(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def change_of(model: ModelFigures) -> float | None:
    """Return the difference to the period before; None if one of them is empty."""
    now = share_of(model.degraded, model.runs)
    before = share_of(model.degraded_before, model.runs_before)
    return None if now is None or before is None else now - before


def has_news(document: ReportDocument) -> bool:
    incidents, quality = document.incidents, document.quality
    return bool(
        document.degradation
        or document.groups
        or (incidents and incidents.count)
        or quality.silent
        or (document.total.runs_before and not document.total.runs)
        or any(status_of(model) in BAD for model in document.models)
    )
