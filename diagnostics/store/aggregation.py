"""Aggregation of delta rows into rollups and failure groups, by any number of workers at once.

An aggregator locks rows that no other has locked, adds them to every grain and deletes them, all
in one transaction. Rows that commit late are found later, an aggregator that dies has changed
nothing, and a reader finds every event exactly once, in a delta or in the rollups.
Projects take turns, a batch each: many rows of one, or rows that fail, delay no other.
"""

from functools import partial
from time import monotonic

from django.db import transaction

from diagnostics import clock
from diagnostics.store.deadlines import try_work
from diagnostics.store.rollups import SERIES, VERSION
from diagnostics.store.sql import change, fetch, fill, statement
from diagnostics.store.windows import MINUTES_KEPT

DELTAS = "diagnostics_rollup_delta"
GROUP_DELTAS = "diagnostics_group_delta"
# The rollups of hours and days, and what their rows are of.
WIDER = {
    "hour": "series_id",
    "day": "series_id",
    "hour_by_version": "series_id, version_id",
    "day_by_version": "series_id, version_id",
}
# By table of deltas: the statement that folds some of its rows.
FOLDS = {
    DELTAS: fill(
        "fold_deltas",
        delta=DELTAS,
        wider=",\n".join(
            fill("fold_wider", rollup=rollup, unit=rollup.partition("_")[0], keys=keys)
            for rollup, keys in WIDER.items()
        ),
    ),
    GROUP_DELTAS: fill(
        "fold_groups",
        delta=GROUP_DELTAS,
        wider=",\n".join(fill("fold_groups_wider", unit=unit) for unit in ("hour", "day")),
    ),
}
BATCH, BATCH_SECONDS = 2_000, 60.0
# A task stays short: the rest waits for the next beat, five seconds later.
LONGEST_SECONDS = 20.0
UNTIL_DONE = float("inf")


def fold(seconds: float = LONGEST_SECONDS) -> int:
    """Fold waiting rows for about so many seconds, projects in turn; return how many rows."""
    folded = sum(_fold_in_turn(table, seconds / len(FOLDS)) for table in FOLDS)
    change(statement("tend_groups"))
    return folded


def fold_project(project_id: int) -> None:
    for table in FOLDS:
        while fold_batch(table, project_id):
            pass


@transaction.atomic
def fold_batch(table: str, project_id: int) -> int:
    """Fold the oldest rows of a project that no other folder has locked; return how many."""
    sql = f"SELECT id FROM {table} WHERE project_id = %s ORDER BY id LIMIT %s"  # noqa: S608 - ours
    rows = fetch(f"{sql} FOR UPDATE SKIP LOCKED", [project_id, BATCH])
    if not rows:
        return 0
    ids = [identifier for (identifier,) in rows]
    for kept, fields in (("diagnostics_series", SERIES), ("diagnostics_version", VERSION)):
        text = fill("add_keys", delta=table, table=kept, fields=", ".join(fields))
        change(text, {"ids": ids})
    parameters = {"ids": ids, "minutes_since": clock.now() - MINUTES_KEPT}
    ((folded,),) = fetch(FOLDS[table], parameters)
    return int(folded)


def waiting() -> int:
    counts = (f"(SELECT count(*) FROM {table})" for table in FOLDS)  # noqa: S608 - our own
    ((number,),) = fetch(f"SELECT {' + '.join(counts)}")
    return int(number)


def _fold_in_turn(table: str, seconds: float) -> int:
    """Fold a batch of each waiting project, whose oldest row is the oldest first, and again."""
    end, folded, over = monotonic() + seconds, 0, set[int]()
    sql = fill("waiting_projects", delta=table)
    while projects := [project_id for (project_id,) in fetch(sql) if project_id not in over]:
        for project_id in projects:
            if monotonic() >= end:
                return folded
            count = try_work(
                table, project_id, partial(fold_batch, table, project_id), BATCH_SECONDS
            )
            folded += count
            if not count:
                over.add(project_id)
    return folded
