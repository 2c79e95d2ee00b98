"""What became of the items each key sent, by minute: one short statement a request.

A statement of its own, after the answer is decided; it does not wait for the disk, and a
fault in it is logged and nothing else. Kept for a week.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import DatabaseError, connection
from django.db.models import Sum

from diagnostics import clock
from diagnostics.core.cleaning import clean_text
from diagnostics.models import ApiKey, KeyMinute
from diagnostics.redacting import redact
from diagnostics.sql import statement

logger = structlog.get_logger(__name__)

OUTCOMES = ("stored", "duplicate", "conflict", "invalid", "rejected")
# What answers call an item that is here counted under another name.
NAMES = {"created": "stored"}
SLOTS = 8
LONGEST_SOURCE = 200
# A sender that names its source anew in every item fills no table.
MOST_SOURCES = 20
KEEP = timedelta(days=7)

Counts = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Tally:
    """Items by what became of them."""

    stored: int = 0
    duplicate: int = 0
    conflict: int = 0
    invalid: int = 0
    rejected: int = 0


def count_items(sources: Iterable[object], outcomes: Iterable[str]) -> Counts:
    """Count the items of a batch by source and outcome."""
    named = (one if isinstance(one, str) else "" for one in sources)
    pairs = zip(named, outcomes, strict=True)
    return Counter((source, NAMES.get(word, word)) for source, word in pairs)


def note_items(key: ApiKey, counts: Counts) -> None:
    """Add counts to the running minute of a key; never raises."""
    rows = _rows(counts)
    if not rows:
        return
    told: dict[str, Any] = {
        "project": key.project_id,
        "key": key.pk,
        "slot": os.getpid() % SLOTS,
        "sources": [source for source, _ in rows],
        **{
            name: [tally[place] for _, tally in rows]
            for place, name in enumerate(OUTCOMES)
        },
    }
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement("add_key_minute"), told)
    except DatabaseError as error:
        logger.warning("items_not_counted", error=type(error).__name__)


def tallies_of(project_id: int, field: str, since: datetime) -> dict[object, Tally]:
    """Add up what was sent since a moment, by `api_key` or `source`."""
    found = KeyMinute.objects.filter(project_id=project_id, minute__gte=since)
    sums = found.order_by().values_list(field).annotate(*map(Sum, OUTCOMES))
    return {row[0]: Tally(*row[1:]) for row in sums}


def forget_old_counts() -> int:
    """Delete what is older than a week; returns how many rows."""
    old = KeyMinute.objects.filter(minute__lt=clock.now() - KEEP)
    return old.delete()[0]


def _rows(counts: Counts) -> Sequence[tuple[str, list[int]]]:
    """Put counts side by side, one row a source; too many sources are one."""
    rows: dict[str, list[int]] = {}
    many = len({source for source, _ in counts}) > MOST_SOURCES
    for (source, word), number in counts.items():
        name = "" if many else redact(clean_text(source), LONGEST_SOURCE)
        row = rows.setdefault(name, [0] * len(OUTCOMES))
        row[OUTCOMES.index(word)] += number
    # In one order for everybody: two requests never wait for each other in a circle.
    return sorted(rows.items())
