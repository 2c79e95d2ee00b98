"""Reads of a comparison: which two windows, and what was counted in each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from diagnostics.core.call_counts import EVERYTHING
from diagnostics.core.query_language import Term
from diagnostics.core.selection import Selection
from diagnostics.core.windows import Grain, Window, align_to
from diagnostics.ingestion.deploys import deploys_of
from diagnostics.models import Deploy
from diagnostics.queries.events import window_for
from diagnostics.queries.models import window_of
from diagnostics.queries.summing import Question, sum_rollups

WEEK = timedelta(days=7)
MATCHED = ("prompt_version", "schema", "schema_version")
Sums = Mapping[str, int]
Version = tuple[str | None, ...]


class Against(StrEnum):
    """Which time the other side has."""

    PERIOD = "period"
    WEEK = "week"
    DEPLOY = "deploy"
    SAME = "same"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class Part:
    """One side: its window, and what it is narrowed to."""

    window: Window
    terms: Sequence[Term]


@dataclass(frozen=True, slots=True)
class Parts:
    """Both sides; `deploy` stands between them when it was asked for and is known."""

    a: Part
    b: Part
    deploy: Deploy | None = None


def parts_of(
    project_id: int,
    selection: Selection,
    other: Selection,
    against: Against,
    now: datetime,
) -> Parts:
    """Choose both windows; without a deploy, the time before is compared."""
    terms, others = selection.rollup_terms, other.rollup_terms
    window = window_of(selection, now)
    deploy = None
    if against is Against.DEPLOY:
        deploy = deploys_of(project_id, until=min(window.until, now)).first()
    if deploy is not None:
        window = window_for(deploy.at, min(window.until, now), terms)
    before = _other_window(other, against, window, now)
    return Parts(Part(window, terms), Part(before, others), deploy)


def sums_by_version(project_id: int, part: Part) -> dict[Version, Sums]:
    """Add up everything by prompt and schema version, in whole hours."""
    whole = align_to(Grain.HOUR, part.window.since, part.window.until)
    rows = sum_rollups(project_id, Question(whole, MATCHED, EVERYTHING, part.terms))
    width = len(MATCHED)
    return {tuple(row[:width]): dict(zip(EVERYTHING, row[width:], strict=True)) for row in rows}


def add_sums(found: Sequence[Sums]) -> Sums:
    """Add sums up, measure by measure."""
    return {name: sum(one[name] for one in found) for name in EVERYTHING}


def _other_window(other: Selection, against: Against, window: Window, now: datetime) -> Window:
    span = window.until - window.since
    if against is Against.SAME:
        return window
    if against is Against.WEEK:
        return replace(window, since=window.since - WEEK, until=window.until - WEEK)
    if against is Against.CUSTOM and other.is_custom:
        return window_for(*other.window(now), other.rollup_terms)
    return replace(window, since=window.since - span, until=window.since)
