"""Reads of the prompts page: calls by version, model and time; failures new with a version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from diagnostics.core.call_counts import CALLS, count_calls
from diagnostics.core.prompt_versions import Placed, Seen, Used, introduced_by
from diagnostics.core.query_language import Term
from diagnostics.core.windows import WIDTHS, Grain, align_to
from diagnostics.models import FailureGroup
from diagnostics.queries.summing import Question, Slots, sum_rollups
from diagnostics.sql import statement

HOUR = WIDTHS[Grain.HOUR]
VERSIONS = ("source", "prompt_version")


@dataclass(frozen=True, slots=True)
class Axis:
    """Equal slots of whole hours."""

    since: datetime
    until: datetime
    width: timedelta

    @property
    def count(self) -> int:
        """How many slots there are."""
        return -(-(self.until - self.since) // self.width)


def axis_of(since: datetime, until: datetime, most_slots: int) -> Axis:
    """Divide a stretch of time, widened to hours, into at most so many slots."""
    window = align_to(Grain.HOUR, since, until)
    hours = -(-(window.until - window.since) // (most_slots * HOUR))
    return Axis(window.since, window.until, max(hours, 1) * HOUR)


def used_versions(project_id: int, axis: Axis, terms: Sequence[Term]) -> list[Used]:
    """Give the calls of every prompt version by every model."""
    window = align_to(Grain.HOUR, axis.since, axis.until)
    asked = Question(window, (*VERSIONS, "provider", "model"), CALLS, terms)
    found = []
    for source, version, provider, model, *sums in sum_rollups(project_id, asked):
        counts = count_calls(dict(zip(CALLS, sums, strict=True)))
        if counts.calls:
            found.append(Used(source, version, (provider, model), counts))
    return found


def placed_versions(project_id: int, axis: Axis, terms: Sequence[Term]) -> list[Placed]:
    """Give the calls of every prompt version in every slot; models are added up."""
    window = align_to(Grain.HOUR, axis.since, axis.until)
    slots = Slots(axis.since, axis.width, axis.count)
    asked = Question(window, VERSIONS, ("attempts", "runs"), terms, slots)
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
        "since": axis.since,
        "until": axis.until,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement("groups_by_version"), asked)
        rows = cursor.fetchall()
    first_seen = {row[0]: row[4] for row in rows}
    by_version = introduced_by((Seen(*row[:4]) for row in rows), first_seen, HOUR)
    wanted = [group for groups in by_version.values() for group in groups]
    groups = FailureGroup.objects.filter(project_id=project_id).in_bulk(wanted)
    return {
        key: [groups[pk] for pk in ids if pk in groups]
        for key, ids in by_version.items()
    }
