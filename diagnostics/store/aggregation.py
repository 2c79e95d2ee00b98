"""Aggregation of delta rows into rollups and failure groups, by any number of workers at once.

An aggregator locks rows that no other has locked, adds them to every grain and deletes them, all
in one transaction. Rows that commit late are found later, an aggregator that dies has changed
nothing, and a reader finds every event exactly once, in a delta or in the rollups.
"""

from collections.abc import Callable
from itertools import takewhile

from django.db import transaction

from diagnostics import clock
from diagnostics.store.sql import change, fetch, statement
from diagnostics.store.windows import MINUTES_KEPT

DELTAS = "diagnostics_rollup_delta"
GROUP_DELTAS = "diagnostics_group_delta"
TABLES = (DELTAS, GROUP_DELTAS)
BATCH = 5_000
# A task stays short: the rest waits for the next beat, two seconds later.
MOST_BATCHES = 40


def fold(most_batches: int = MOST_BATCHES) -> int:
    """Fold waiting rows, at most `most_batches` batches of each kind; return how many rows."""
    folded = _fold_all(fold_deltas, most_batches) + _fold_all(fold_groups, most_batches)
    change(statement("tend_groups"))
    return folded


@transaction.atomic
def fold_deltas() -> int:
    """Fold one batch of counts into minutes, hours, days, versions and totals."""
    ids = _lock(DELTAS)
    if not ids:
        return 0
    oldest = clock.now() - MINUTES_KEPT
    _add_keys(DELTAS, ids)
    ((folded,),) = fetch(statement("fold_deltas"), {"ids": ids, "minutes_since": oldest})
    return int(folded)


@transaction.atomic
def fold_groups() -> int:
    """Fold one batch of failures into their groups."""
    ids = _lock(GROUP_DELTAS)
    if not ids:
        return 0
    _add_keys(GROUP_DELTAS, ids)
    ((folded,),) = fetch(statement("fold_groups"), {"ids": ids})
    return int(folded)


def waiting() -> int:
    """Count the delta rows that wait to be folded."""
    counts = (f"(SELECT count(*) FROM {table})" for table in TABLES)  # noqa: S608 - our own
    ((number,),) = fetch(f"SELECT {' + '.join(counts)}")
    return int(number)


def _fold_all(fold_batch: Callable[[], int], most_batches: int) -> int:
    return sum(takewhile(bool, (fold_batch() for _ in range(most_batches))))


def _lock(table: str) -> list[int]:
    """Lock the oldest rows that no other folder has locked."""
    oldest = f"SELECT id FROM {table} ORDER BY id LIMIT %s"  # noqa: S608 - our own name
    return [identifier for (identifier,) in fetch(f"{oldest} FOR UPDATE SKIP LOCKED", [BATCH])]


def _add_keys(table: str, ids: list[int]) -> None:
    for name in ("add_series", "add_versions"):
        change(statement(name).replace("<<delta>>", table), {"ids": ids})
