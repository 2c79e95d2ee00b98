"""Loads invented runs by COPY, day by day, and counts them as the fold would."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from psycopg import Connection, connect

from bench.filling.invented import (
    EVENT_COLUMNS,
    IDENTITY_COLUMNS,
    PAYLOAD_COLUMNS,
    Lines,
    Stretch,
    event_lines,
    fault_kinds,
)
from diagnostics import clock
from diagnostics.failures.models import FailureGroup
from diagnostics.store.partitions import (
    TABLES,
    PartitionedTable,
    Unit,
    ensure_partitions,
    partition_name,
    period_of,
)
from diagnostics.store.sql import MARKS

DAYS = 30
"""Events are this old at most."""
COUNTED_DAYS = 90
"""Counts are."""
IDENTITY_SPAN = timedelta(days=8)
MINUTES_SPAN = timedelta(hours=48)
DAY = timedelta(days=1)
AT_ONCE = 2
CHUNK = 2_000
FOLDER = Path(__file__).parent / "sql"


@dataclass(frozen=True, slots=True)
class Filling:
    """Where the events of a project go, and what now is for all of them."""

    url: str
    project: int
    now: datetime

    def load(self, stretch: Stretch) -> None:
        """Write a day: events, details, identities, counts; one transaction."""
        event, payload = (_leaf(table, stretch.since) for table in TABLES[:2])
        lines, now = Lines(), self.now
        keeps = stretch.since >= now - IDENTITY_SPAN
        written = event_lines(stretch, lines, with_identities=keeps)
        with connect(self.url) as server:
            # Rows of a table that is new are written as seen by all: nothing to vacuum.
            server.execute(f"TRUNCATE {event}, {payload}")
            _copy(server, f"{event} ({EVENT_COLUMNS})", written, "(FREEZE)")
            _copy(server, f"{payload} ({PAYLOAD_COLUMNS})", lines.payloads, "(FREEZE)")
            identities = f"diagnostics_eventidentity ({IDENTITY_COLUMNS})"
            _copy(server, identities, lines.identities)
            marks = {"<<event>>": event, "<<payload>>": payload}
            asked: dict[str, int | datetime] = {
                "project": self.project,
                "since": _midnight(stretch.since),
                "until": _midnight(stretch.since) + DAY,
                "minutes_since": now - MINUTES_SPAN,
            }
            for name in ("names", "day", "runs"):
                run_file(server, name, asked, marks)


def fill(project: int, size: int, url: str) -> None:
    """Write so many events of the last days, and counts that reach further back."""
    now = clock.now()
    filling = Filling(url, project, now)
    ensure_partitions((now - timedelta(days=COUNTED_DAYS + 1)).date(), now.date())
    _make_groups(project, now)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        # Asked for one by one: a day that failed is a failure of all.
        list(pool.map(filling.load, stretches(project, size, now)))
    with connect(url, autocommit=True) as server:
        run_file(server, "older", {"project": project}, {})
        server.execute("VACUUM (ANALYZE)")


def stretches(project: int, size: int, now: datetime) -> Iterator[Stretch]:
    """Divide events over the days (UTC), oldest first: as many an hour in all of them."""
    since, given = now - timedelta(days=DAYS), 0
    for day in range(DAYS + 1):
        until = min(_midnight(since) + DAY, now)
        upto = round(size * (1 - (now - until) / timedelta(days=DAYS)))
        yield Stretch(project, since, until, upto - given, day)
        since, given = until, upto


def run_file(
    server: Connection, name: str, asked: Mapping[str, int | datetime], marks: Mapping[str, str]
) -> None:
    """Run the statements of a file; measures are taken from where the product has them."""
    text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    for mark, part in {**MARKS, **marks}.items():
        text = text.replace(mark, part)
    for statement in text.split(";\n"):
        if statement.strip():
            server.execute(statement, asked)


def _copy(server: Connection, into: str, lines: Iterable[str], how: str = "") -> None:
    with server.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN {how}") as copy:
        for chunk in _chunks(lines):
            copy.write(chunk)


def _chunks(lines: Iterable[str]) -> Iterator[str]:
    held: list[str] = []
    for line in lines:
        held.append(line)
        if len(held) == CHUNK:
            yield "".join(held)
            held.clear()
    yield "".join(held)


def _leaf(table: PartitionedTable, at: datetime) -> str:
    return partition_name(table, period_of(Unit.DAY, at.date()))


def _midnight(at: datetime) -> datetime:
    return datetime(at.year, at.month, at.day, tzinfo=UTC)


def _make_groups(project: int, now: datetime) -> None:
    FailureGroup.objects.bulk_create(
        FailureGroup(
            project_id=project,
            fingerprint=kind.fingerprint,
            fingerprint_version=1,
            node=kind.node,
            schema=kind.schema,
            kind=kind.kind,
            error_type=kind.error_type,
            pointer=kind.pointer,
            detail=kind.detail,
            state=FailureGroup.State.ONGOING,
            first_seen=now,
            last_seen=now,
            seen=0,
            last_event_id=uuid4(),
        )
        for kind in fault_kinds()
    )
