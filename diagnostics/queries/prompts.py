"""Reads of the prompts page: calls by version, model and time; failures new with a version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from diagnostics.core.call_counts import CALLS, count_calls
from diagnostics.core.prompt_versions import Placed, Seen, Used, introduced_by
from diagnostics.core.query_language import Term
from diagnostics.core.windows import WIDTHS, Grain, Window, align_to
from diagnostics.models import FailureGroup
from diagnostics.queries.summing import Question, Slots, sum_rollups
from diagnostics.sql import statement

HOUR = WIDTHS[Grain.HOUR]
VERSIONS = ("source", "prompt_version")
MOST_BY_HOUR = timedelta(days=15)
"""Longer ones are read by the day (UTC)."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Equal slots of whole hours, or of days, and the window in them that is counted."""

    since: datetime
    until: datetime
    width: timedelta
    window: Window

    @property
    def count(self) -> int:
        """How many slots there are."""
        return -(-(self.until - self.since) // self.width)


def axis_of(since: datetime, until: datetime, most_slots: int) -> Axis:
    """Divide a stretch of time into at most so many slots, of whole hours or days."""
    grain = Grain.DAY if until - since > MOST_BY_HOUR else Grain.HOUR
    whole, each = align_to(grain, since, until), WIDTHS[grain]
    widths = max(-(-(whole.until - whole.since) // (most_slots * each)), 1)
    counted = align_to(Grain.HOUR, since, until)
    return Axis(whole.since, whole.until, widths * each, counted)


def used_versions(project_id: int, axis: Axis, terms: Sequence[Term]) -> list[Used]:
    """Give the calls of every prompt version by every model."""
    asked = Question(axis.window, (*VERSIONS, "provider", "model"), CALLS, terms)
    found = []
    for source, version, provider, model, *sums in sum_rollups(project_id, asked):
        counts = count_calls(dict(zip(CALLS, sums, strict=True)))
        if counts.calls:
            found.append(Used(source, version, (provider, model), counts))
    return found


def placed_versions(project_id: int, axis: Axis, terms: Sequence[Term]) -> list[Placed]:
    """Give the calls of every prompt version in every slot; models are added up."""
    slots = Slots(axis.since, axis.width, axis.count)
    asked = Question(axis.window, VERSIONS, ("attempts", "runs"), terms, slots)
    return [
        # As `count_calls` has it: where no call was told, runs stand for them.
        Placed(source, version, slot, attempts or runs)
        for source, version, slot, attempts, runs in sum_rollups(project_id, asked)
        if attempts or runs
    ]


def new_failures(
    project_id: int, axis: Axis
) -> Mapping[tuple[str | None, str | None], list[FailureGroup]]:
    """Give the failure groups that were first seen with a version, by source and version."""
    asked: dict[str, int | datetime] = {
        "project": project_id,
        "since": axis.window.since,
        "until": axis.window.until,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement("groups_by_version"), asked)
        rows = cursor.fetchall()
    first_seen = {row[0]: row[4] for row in rows}
    by_version = introduced_by((Seen(*row[:4]) for row in rows), first_seen, HOUR)
    wanted = [group for groups in by_version.values() for group in groups]
    groups = FailureGroup.objects.filter(project_id=project_id).in_bulk(wanted)
    return {key: [groups[pk] for pk in ids if pk in groups] for key, ids in by_version.items()}
