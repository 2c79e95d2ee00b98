"""What a report says, as figures and names: kept as JSON, worded by `letter`.

Names come from outside: whoever makes a document gives them cleaned (`name_of`). Shares are
not kept, only what they are made of. Times are instants; addresses are paths.
"""

from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from diagnostics.core.mail_headers import clean_header
from diagnostics.core.wording import shorten

LONGEST_NAME = 60
LONGEST_TEXT = 240


class Figures(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelFigures(Figures):
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


class Degradation(Figures):
    """What got worse, since when, and what it comes from."""

    subject: str
    since: datetime
    bad: int
    total: int
    noun: str
    baseline: float | None
    kind: str
    cause: str


class GroupFigures(Figures):
    """One kind of failure that began, came back or was resolved."""

    state: Literal["new", "regressed", "resolved"]
    text: str
    seen: int
    url: str


class AdviceFigures(Figures):
    """One thing to change, and why."""

    text: str
    evidence: str
    url: str


class IncidentFigures(Figures):
    """Incidents that fired in the period; medians of those that got so far, in seconds."""

    count: int
    open: int
    acknowledged: int
    acknowledge_seconds: float | None
    clear_seconds: float | None
    judged: int
    false_alarms: int
    url: str


class QualityFigures(Figures):
    """How far the figures can be trusted."""

    events: int
    rejected: int
    duplicates: int
    sources: int
    silent: list[str] = []
    # They send failures and never a success: their shares mean nothing.
    without_successes: list[str] = []
    url: str


class Document(Figures):
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
    """Give a name of somebody else's making as one line; nothing is `unknown`."""
    return shorten(clean_header(text or ""), most) or "unknown"
