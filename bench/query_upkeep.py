"""What deleting costs: batches of a purge, redacting again, a day that is over."""

import time
from collections.abc import Iterator, Mapping

from django.db import connection
from django.test import override_settings

from bench.database import server_cpu_seconds
from bench.filling.loading import DAYS
from bench.growth import timed
from bench.query_costs import Cost
from diagnostics.purge import MOST_ROWS, delete_batch, purge_correlation
from diagnostics.redaction.rescrub import BATCH_ROWS, advance, request_rescrub
from diagnostics.redaction.rules import Rescrub
from diagnostics.store.models import Event
from diagnostics.store.retention import drop_old, leaves_of

BATCHES = 20
PURGED = 5
DAYS_DROPPED = 3


def upkeep(project: int) -> Mapping[str, Cost]:
    """Measure each, the one that changes most last."""
    return {
        "purge of a reference": _purge_of_references(project),
        f"purge, batch of {MOST_ROWS:,} events": _purge_batches(project),
        f"redacting again, batch of {BATCH_ROWS}": _rescrub_batches(project),
        "retention of a day": _retention(),
    }


def _purge_of_references(project: int) -> Cost:
    """Purge runs from all over the month, one by one, as people ask for it."""
    events = Event.objects.filter(project_id=project, kind="degraded")
    names = list(events.order_by("event_id").values_list("correlation_id", flat=True)[:BATCHES])
    return _cost_of_steps(purge_correlation(project, name) for name in names)


def _purge_batches(project: int) -> Cost:
    """Delete from the latest whole day: as all of a project is, batch by batch."""
    *_, latest, _ = filter(_has_rows, leaves_of("diagnostics_event"))
    return _cost_of_steps(delete_batch(latest, project) for _ in range(PURGED))


def _has_rows(leaf: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT FROM {leaf})")  # noqa: S608 - our own name
        return bool(cursor.fetchone()[0])


def _rescrub_batches(project: int) -> Cost:
    request_rescrub(project, None)
    request = Rescrub.objects.get(project_id=project)
    return _cost_of_steps(advance(request.pk) for _ in range(BATCHES))


def _cost_of_steps(steps: Iterator[object]) -> Cost:
    """Measure what an iterator does, step by step; all of it is asked of the server."""
    pid = connection.connection.info.backend_pid
    before, taken = server_cpu_seconds([pid]), []
    while True:
        began = time.perf_counter()
        if next(steps, None) is None:
            break
        taken.append(time.perf_counter() - began)
    cpu = server_cpu_seconds([pid]) - before
    whole = 1000 * max(taken)
    return Cost(whole, whole, 1000 * cpu / len(taken))


def _retention() -> Cost:
    """Let the clock run on, day by day: one of events and one of details is due each time."""
    taken = []
    with override_settings(FAILSOFT_KEEP_EVENT_DAYS=DAYS, FAILSOFT_KEEP_PAYLOAD_DAYS=DAYS):
        # What is older has no rows.
        drop_old()
        for days in range(1, DAYS_DROPPED + 1):
            _shift_clock(f"{days} days")
            taken.append(timed(drop_old, time.perf_counter))
    _shift_clock("")
    return Cost(1000 * max(taken), 1000 * max(taken), 0.0)


def _shift_clock(by: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('failsoft.clock_shift', %s, false)", [by])
