"""The results of the items of each key, by minute: a short statement per second and key.

It runs after the response and does not wait for the disk; a failure is only logged. A web
process gathers the counts of a second and writes them from a thread of its own; other
processes have no connection pool and write at once. Kept for the report on a month.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from threading import Lock, Timer

import structlog
from django.db import Error, connection
from django.db.models import Sum
from pydantic_core import to_json

from diagnostics import clock
from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.models import KeyMinute
from diagnostics.redaction.redactor import redact_name
from diagnostics.redaction.rules import texts_of
from diagnostics.store.sql import execute_prepared, fill

logger = structlog.get_logger(__name__)

# Statuses in responses that are counted under another name here.
NAMES = {"created": "stored"}
SLOTS = 8
LONGEST_SOURCE = 200
# A sender with a new source name in every item cannot fill the table.
MOST_SOURCES = 20
GATHER_SECONDS = 1.0
KEEP = timedelta(days=33)

Counts = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class ItemCounts:
    stored: int = 0
    duplicate: int = 0
    conflict: int = 0
    invalid: int = 0
    rejected: int = 0
    # In addition to the others: of stored answers, and of items without an event.
    unchecked: int = 0
    not_understood: int = 0
    ahead: int = 0
    late: int = 0


OUTCOMES = tuple(outcome.name for outcome in fields(ItemCounts))
ADD = {
    "counts": ", ".join(OUTCOMES),
    "added_counts": ", ".join(f"{name} = kept.{name} + excluded.{name}" for name in OUTCOMES),
}


def count_items(outcomes: Iterable[tuple[object, str]]) -> Counts:
    """Count items by their sources, which may be of any type, and outcomes."""
    return Counter(
        (source if isinstance(source, str) else "", NAMES.get(word, word))
        for source, word in outcomes
    )


class _Gathered:
    """Counts not written yet, by project and key; the first one starts the timer."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[tuple[int, int], Counter[tuple[str, str]]] = {}

    def add(self, project_id: int, key_id: int, counts: Counts) -> None:
        with self._lock:
            is_first = not self._counts
            self._counts.setdefault((project_id, key_id), Counter()).update(counts)
        if is_first:
            clockwork = Timer(GATHER_SECONDS, self.write)
            clockwork.daemon = True
            clockwork.start()

    def write(self) -> None:
        with self._lock:
            counts, self._counts = self._counts, {}
        try:
            for (project_id, key_id), key_counts in counts.items():
                _write(project_id, key_id, key_counts)
        finally:
            connection.close()


_gathered = _Gathered()


def note_items(key: ApiKey, counts: Counts) -> None:
    """Add counts to the running minute of a key; never raises."""
    if not counts:
        return
    if "pool" in connection.settings_dict["OPTIONS"]:
        _gathered.add(key.project_id, key.pk, counts)
    else:
        _write(key.project_id, key.pk, counts)


def _write(project_id: int, key_id: int, counts: Counts) -> None:
    with texts_of(project_id):
        rows = _rows(counts)
    params = {
        "project": project_id,
        "key": key_id,
        "slot": os.getpid() % SLOTS,
        "rows": to_json(rows).decode(),
    }
    try:
        execute_prepared(fill("add_key_minute", **ADD), params)
    except Error as error:
        logger.warning("items_not_counted", error=type(error).__name__)


def tallies_of(project_id: int, field: str, since: datetime) -> dict[object, ItemCounts]:
    """Sum the items sent since a time, by `api_key` or `source`."""
    minutes = KeyMinute.objects.filter(project_id=project_id, minute__gte=since)
    sums = minutes.order_by().values_list(field).annotate(*map(Sum, OUTCOMES))
    return {row[0]: ItemCounts(*row[1:]) for row in sums}


def forget_old_counts() -> int:
    old = KeyMinute.objects.filter(minute__lt=clock.now() - KEEP)
    return old.delete()[0]


def _rows(counts: Counts) -> Sequence[Mapping[str, object]]:
    """Return one row of counts per source; too many sources become one."""
    rows: dict[str, Counter[str]] = {}
    many = len({source for source, _ in counts}) > MOST_SOURCES
    for (source, word), number in counts.items():
        name = "" if many else redact_name(source, LONGEST_SOURCE)
        rows.setdefault(name, Counter(dict.fromkeys(OUTCOMES, 0)))[word] += number
    # In one order for all processes, to avoid deadlocks.
    return [{"source": source, **tally} for source, tally in sorted(rows.items())]
