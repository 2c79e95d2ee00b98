"""Deleting everything of one correlation id, or of a project: goals, runs, events.

Batch by batch and restartable: what was interrupted is finished by asking again. Goals and
runs that have not ended are refused, for their workers would write on.
"""

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from agents.models import Goal
from diagnostics.models import Event, Project
from diagnostics.storage import purging
from plans.models import Run, WorkingItem

BATCH = 200
AT_WORK = (Goal.Status.QUEUED, Goal.Status.RUNNING, Goal.Status.WAITING_USER)
UNENDED = (Run.State.QUEUED, Run.State.RUNNING)


class StillAtWorkError(Exception):
    """goals or runs have not ended: cancel them first"""


@dataclass(frozen=True, slots=True)
class Purged:
    """How much was deleted."""

    goals: int
    runs: int
    events: int


def purge(project: Project, correlation_id: str | None) -> Purged:
    """Delete what belongs to a correlation id, or with None everything that was recorded.

    Settings, keys, models, tools and fix patterns of the project stay. Raises
    StillAtWorkError.
    """
    mine = _recorded(project, correlation_id)
    goals, runs = Goal.objects.filter(mine), Run.objects.filter(mine)
    if goals.filter(status__in=AT_WORK).exists() or runs.filter(state__in=UNENDED).exists():
        raise StillAtWorkError(StillAtWorkError.__doc__)
    counted = _delete_goals(project, goals), _delete_runs(project, runs)
    if correlation_id is None:
        return Purged(*counted, purging.purge_project(project))
    return Purged(*counted, purging.purge_correlation(project.pk, correlation_id))


def count(project: Project, correlation_id: str | None) -> Purged:
    """Return how much `purge` would delete now."""
    mine = _recorded(project, correlation_id)
    tables = (Goal, Run, Event)
    return Purged(*(table.objects.filter(mine).count() for table in tables))


def _recorded(project: Project, correlation_id: str | None) -> Q:
    mine = Q(project=project)
    return mine if correlation_id is None else mine & Q(correlation_id=correlation_id)


def _delete_goals(project: Project, goals: QuerySet[Goal]) -> int:
    total = 0
    while ids := list(goals.values_list("pk", flat=True)[:BATCH]):
        _delete_working(project, [f"goal:{pk}" for pk in ids])
        Goal.objects.filter(pk__in=ids).delete()
        total += len(ids)
    return total


def _delete_runs(project: Project, runs: QuerySet[Run]) -> int:
    total = 0
    while ids := list(runs.values_list("pk", flat=True)[:BATCH]):
        _delete_working(project, [f"run:{pk}" for pk in ids])
        Run.objects.filter(pk__in=ids).delete()
        total += len(ids)
    return total


def _delete_working(project: Project, owners: list[str]) -> None:
    WorkingItem.objects.filter(project=project, owner__in=owners).delete()
