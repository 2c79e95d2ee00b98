"""What reading costs when there is much: boards, pages, retention, room on disk.

    python -m bench.queries [--quick] [--events 100000,1000000] [--folder DIR]

Makes that many events of the last 30 days by COPY, 200 series, fills the rollups from them,
and asks: the boards of 24 hours and 30 days with their baselines, the curves and kinds of
the Now page, pages of the event list at the top and deep down, with filters and without;
then drops the oldest day. Milliseconds are of whole answers, SQL and reading of rows.
Growth is the exponent between the smallest and the largest size.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db import connection

from bench.database import running_database, say, server_cpu_seconds
from diagnostics import clock
from diagnostics.core.query_language import Term
from diagnostics.group_counting import GroupQuestion
from diagnostics.group_reading import groups_of
from diagnostics.models import Event, Project
from diagnostics.partitions import ensure_partitions
from diagnostics.reading import events_of, page_of, series_rows
from diagnostics.retention import drop_old, storage_sizes
from diagnostics.sql import MARKS
from diagnostics.trends import kinds, trends

DAYS = 30
ROUNDS = 40
KEPT = ("diagnostics_event", "diagnostics_rollup", "diagnostics_group_hour")
FOLDER = Path(__file__).parent / "queries_sql"
Answer = Callable[[], object]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--events", default="10000,100000,1000000")
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    sizes = [2_000] if asked.quick else [int(n) for n in asked.events.split(",")]
    found = {size: measure(size, asked.folder) for size in sizes}
    say(f"\n{'p95 ms / server CPU ms':38}" + "".join(f"{size:>18,}" for size in sizes))
    for name in found[sizes[0]]:
        each = [found[size][name] for size in sizes]
        shown = "".join(f"{cost.p95_ms:9.2f} /{cost.cpu_ms:7.2f}" for cost in each)
        say(f"{name:38}{shown}  {_growth(each[0].p95_ms, each[-1].p95_ms, sizes)}")


@dataclass(frozen=True)
class Cost:
    """Of one answer: wall time, and CPU time of the server's process."""

    p95_ms: float
    cpu_ms: float


def measure(size: int, folder: Path | None) -> Mapping[str, Cost]:
    """Fill a server of its own and give the cost of each answer."""
    with running_database(folder):
        project = Project.objects.create(slug="bench", name="Bench")
        now = clock.now()
        ensure_partitions((now - timedelta(days=DAYS + 1)).date(), now.date())
        seconds = _timed(lambda: fill(project.pk, size))
        say(f"{size:,} events written and rolled up in {seconds:.0f} s")
        found = {name: _cost(ask) for name, ask in _answers(project.pk, now).items()}
        _print_room(size)
        found["retention of a day"] = _retention()
    return found


def fill(project: int, size: int) -> None:
    """Write events and rollups as an installation would hold them."""
    with connection.cursor() as cursor:
        for name in ("fill", "rollups"):
            text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
            for part in text.split(";\n"):
                if part.strip():
                    _run(part, {"project": project, "size": size, "days": DAYS})
        cursor.execute("VACUUM (ANALYZE)")


def _run(text: str, asked: Mapping[str, int]) -> None:
    for mark in ("measures", "columns", "summed"):
        if f"<<{mark}>>" in text:
            text = text.replace(f"<<{mark}>>", _read(mark))
    with connection.cursor() as cursor:
        cursor.execute(text, asked)


def _read(mark: str) -> str:
    """Take the measures from where the product has them."""
    return MARKS[f"<<{mark}>>"]()


def _answers(project: int, now: datetime) -> Mapping[str, Answer]:
    day, month = now - timedelta(hours=24), now - timedelta(days=30)
    until = now + timedelta(minutes=1)
    deep = _cursor(project, now - timedelta(days=25))
    rare = events_of(project).filter(model="model-7", kind="parse_invalid")
    prompt = [Term("prompt_version", "v3")]
    return {
        "index probe": lambda: Event.objects.filter(
            project_id=project, occurred_at__gte=now
        ).first(),
        "board of 1 hour": lambda: series_rows(project, now - timedelta(hours=1), now),
        "board of 24 hours": lambda: series_rows(project, day, now),
        "board of 30 days": lambda: series_rows(project, month, now),
        "board of 24 hours, one prompt version": lambda: series_rows(
            project, day, now, terms=prompt
        ),
        "kinds of 24 hours": lambda: kinds(project, day, now),
        "curves of 24 hours, by 15 minutes": lambda: trends(project, day, now, 96),
        "curves of 7 days, by hour": lambda: trends(
            project, now - timedelta(days=7), now, 84
        ),
        "groups of 24 hours": lambda: groups_of(project, GroupQuestion(day, until), 25),
        "first page of events": lambda: page_of(events_of(project), 100, None),
        "deep page of events": lambda: page_of(events_of(project), 100, deep),
        "page of a rare failure": lambda: page_of(rare, 25, None),
    }


def _cursor(project: int, at: datetime) -> str | None:
    """Give a cursor far down: as if one had paged there."""
    events = events_of(project).filter(occurred_at__lt=at)
    return page_of(events, 1, None)[1]


def _cost(ask: Answer) -> Cost:
    ask()
    pid = connection.connection.info.backend_pid
    before = server_cpu_seconds([pid])
    taken = sorted(_timed(ask) for _ in range(ROUNDS))
    cpu = server_cpu_seconds([pid]) - before
    return Cost(1000 * taken[math.ceil(0.95 * ROUNDS) - 1], 1000 * cpu / ROUNDS)


def _timed(work: Answer) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _retention() -> Cost:
    """Let the clock run on until the oldest day of events and details is due."""
    taken = []
    for days in (30, 31, 32):
        with connection.cursor() as cursor:
            cursor.execute(f"SET failsoft.clock_shift = '{days + 30} days'")
        began = time.perf_counter()
        dropped = [name for name in drop_old() if "diagnostics_event" in name]
        taken.append((time.perf_counter() - began) / max(len(dropped) // 2, 1))
    with connection.cursor() as cursor:
        cursor.execute("RESET failsoft.clock_shift")
    return Cost(1000 * statistics.median(taken), 0.0)


def _print_room(size: int) -> None:
    for row in storage_sizes():
        if row.table.startswith(KEPT):
            each = row.bytes / size
            say(f"  {row.table:40} {row.bytes >> 20:7,} MiB {each:7.1f} bytes/event")


def _growth(first: float, last: float, sizes: list[int]) -> str:
    if len(sizes) < 2:
        return ""
    exponent = math.log(last / first) / math.log(sizes[-1] / sizes[0])
    return f"exponent {exponent:+.2f}"


if __name__ == "__main__":
    main()
