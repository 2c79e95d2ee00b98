"""Rows of runs, made anew from their events, and deleted when they are old."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from diagnostics import clock
from diagnostics.store.retention import delete_before, delete_in_batches
from diagnostics.store.sql import change, execute, fetch

PURGE_BATCH = 20_000
PIECE = timedelta(hours=1)
RUNS_A_PIECE = 500
IDS = """
SELECT DISTINCT correlation_id COLLATE "C" AS id FROM diagnostics_event
WHERE project_id = %s AND occurred_at >= %s AND occurred_at < %s ORDER BY id
"""
NEXT = """
SELECT max(occurred_at) FROM diagnostics_event WHERE project_id = %s AND occurred_at < %s
"""
FORGET = """
DELETE FROM diagnostics_agentrun WHERE (project_id, correlation_id) IN (
    SELECT project_id, correlation_id FROM diagnostics_agentrun
    WHERE project_id = %s AND began_at < %s LIMIT %s)
"""


@transaction.atomic
def rebuild_runs(project_id: int, correlation_ids: Collection[str]) -> None:
    """Make the rows of runs anew from their events; those without events go."""
    asked = {"project": project_id, "ids": sorted(correlation_ids)}
    execute("lock_runs", asked)
    execute("rebuild_runs", asked)


def rebuild_before(project_id: int, before: datetime) -> Iterator[tuple[datetime, int]]:
    """Make the rows of a project's runs anew, hour by hour, the newest first.

    Gives how far it has come and how many rows it has made. Every piece is a transaction of
    its own: who is killed goes on from there.
    """
    while (latest := fetch(NEXT, [project_id, before])[0][0]) is not None:
        begin = latest - PIECE
        ids = [name for (name,) in fetch(IDS, [project_id, begin, before])]
        for place in range(0, len(ids), RUNS_A_PIECE):
            rebuild_runs(project_id, ids[place : place + RUNS_A_PIECE])
        before = begin
        yield before, len(ids)


def forget_old_runs() -> int:
    """Delete the rows of runs that began before any event that is kept; returns how many.

    What was said of runs goes as long after it was received.
    """
    before = clock.now() - timedelta(days=settings.FAILSOFT_KEEP_EVENT_DAYS)
    delete_before("diagnostics_assessment", "received_at", before, PURGE_BATCH)
    projects = [project for (project,) in fetch("SELECT id FROM diagnostics_project ORDER BY id")]
    return sum(_forget(project, before) for project in projects)


def _forget(project_id: int, before: datetime) -> int:
    return delete_in_batches(lambda most: change(FORGET, [project_id, before, most]), PURGE_BATCH)
