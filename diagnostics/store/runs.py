"""Rows of runs: rebuilding them from their events; deleting events and old runs."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from diagnostics import clock
from diagnostics.store import sql

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
    """Rebuild the rows of runs from their events; delete those without events."""
    params = {"project": project_id, "ids": sorted(correlation_ids)}
    sql.execute("lock_runs", params)
    sql.execute("rebuild_runs", params)


def rebuild_before(project_id: int, before: datetime) -> Iterator[tuple[datetime, int]]:
    """Rebuild the rows of a project's runs, hour by hour, the newest first.

    Yield the time reached and the number of rows. Every hour is a transaction of its own, so
    that a killed rebuild can continue from there.
    """
    while (latest := sql.fetch(NEXT, [project_id, before])[0][0]) is not None:
        begin = latest - PIECE
        ids = [name for (name,) in sql.fetch(IDS, [project_id, begin, before])]
        for start in range(0, len(ids), RUNS_A_PIECE):
            rebuild_runs(project_id, ids[start : start + RUNS_A_PIECE])
        before = begin
        yield before, len(ids)


def forget_old_runs() -> int:
    """Delete the rows of runs that began before the oldest kept event; return how many.

    Assessments of runs are deleted that long after they were received.
    """
    before = clock.now() - timedelta(days=settings.FAILSOFT_KEEP_EVENT_DAYS)
    sql.delete_before("diagnostics_assessment", "received_at", before, PURGE_BATCH)
    projects = [
        project for (project,) in sql.fetch("SELECT id FROM diagnostics_project ORDER BY id")
    ]

    def forget(project_id: int, limit: int) -> int:
        return sql.change(FORGET, [project_id, before, limit])

    return sum(sql.delete_in_batches(partial(forget, project), PURGE_BATCH) for project in projects)


BATCH = 2_000
OF_REFERENCE = "correlation_id = %(value)s"
OF_MARK = "right(replace(event_id::text, '-', ''), length(%(value)s)) = %(value)s"
OF_IDS = "event_id = ANY(%(value)s)"


def forget_batch(project_id: int, condition: str, value: Any, *, with_identities: bool) -> int:  # noqa: ANN401 - as the condition takes it
    """Delete a batch of matching events in the caller's transaction; return how many."""
    text = sql.fill("forget_events", whose=condition)
    params = {
        "project": project_id,
        "value": value,
        "with_identities": with_identities,
        "most": BATCH,
    }
    ((count, runs),) = sql.execute_prepared(text, params)
    rebuild_runs(project_id, runs or ())
    return int(count)
