"""What counting costs the writers: the ingest statement with delta rows and without.

    python -m bench.rollup [--quick] [--writers 8] [--batch 100] [--seconds 4] [--rounds 3]

Writers post batches as fast as they can while a folder folds. The floor is the same
statement with the two parts cut out that append deltas. Both in turn, on one server that is
durable. At the end every rollup is compared with a full recount.
"""

import argparse
import json
import os
import statistics
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection

from bench.database import running_database, say, server_cpu_seconds
from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import _row_of
from diagnostics.redaction.event_rows import make_row
from diagnostics.redaction.redactor import redact_found
from diagnostics.store import aggregation
from diagnostics.store.rollups import MEASURES
from diagnostics.store.sql import GENERIC, statement
from failsoft.events import ParseErrorType, PostedEvent
from failsoft.identifiers import uuid7

PLACE = "00000000-0000-7000-8000-{:012d}"
MODELS = 12
REST = "\nSELECT\n    incoming.index"
GRAINS = ("minute", "hour", "day", "hour_by_version", "day_by_version", "total")


@dataclass
class Tally:
    """What the writers of one round did."""

    deadlocks: int = 0
    rates: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    if asked.quick:
        asked.seconds, asked.rounds = 1.0, 1
    with running_database() as url:
        project = Project.objects.create(slug="bench", name="Bench")
        run(url, project.pk, asked)


def run(url: str, project: int, asked: argparse.Namespace) -> None:
    """Measure both in turn and compare the rollups with the events."""
    counted, plain = statement("record_events"), without_deltas()
    tallies = {"without": Tally(), "with": Tally()}
    for turn in range(2 * asked.rounds):
        name = ("without", "with")[turn % 2]
        text = counted if name == "with" else plain
        write(url, project, text, tallies[name], asked, folds=name == "with")
    say(f"{asked.writers} writers, batches of {asked.batch}, median of rounds")
    say(f"{'deltas':8} {'tx/s':>8} {'events/s':>9} {'CPU us/event':>13} deadlocks")
    for name, tally in tallies.items():
        rate = statistics.median(tally.rates)
        cost = statistics.median(tally.costs) / asked.batch
        shown = f"{name:8} {rate:8.0f} {rate * asked.batch:9.0f} {cost * 1e6:13.1f}"
        say(f"{shown} {tally.deadlocks}")
    began = time.perf_counter()
    while aggregation.fold():
        pass
    say(f"rest folded in {time.perf_counter() - began:.2f} s")
    compare()
    slower = statistics.median(tallies["without"].rates) / statistics.median(tallies["with"].rates)
    dearer = statistics.median(tallies["with"].costs) / statistics.median(tallies["without"].costs)
    say(f"CPU of the writers' backends: {dearer:.2f}x; slower by {slower:.2f}x")


def without_deltas() -> str:
    """Cut the parts that count and group out of the ingest statement."""
    text = statement("record_events")
    for begin, end in ((",\ncounted AS (", ",\n-- The part"), (",\ngrouped AS (", REST)):
        text = text[: text.index(begin)] + text[text.index(end) :]
    return text


def write(
    url: str, project: int, text: str, tally: Tally, asked: argparse.Namespace, *, folds: bool
) -> None:
    """Let all writers post for a while, and fold beside them where there are deltas."""
    stop = threading.Event()
    writers = [Writer(url, project, text, asked.batch, stop) for _ in range(asked.writers)]
    before = server_cpu_seconds([writer.pid for writer in writers])
    began = time.perf_counter()
    for writer in writers:
        writer.start()
    while time.perf_counter() - began < asked.seconds:
        time.sleep(0.5)
        if folds:
            aggregation.fold()
    stop.set()
    for writer in writers:
        writer.join()
    seconds = time.perf_counter() - began
    done = sum(writer.done for writer in writers)
    cpu = server_cpu_seconds([writer.pid for writer in writers]) - before
    tally.deadlocks += sum(writer.deadlocks for writer in writers)
    tally.rates.append(done / seconds)
    tally.costs.append(cpu / done)
    for writer in writers:
        writer.connection.close()


class Writer(threading.Thread):
    """Posts batches of its own events until it is stopped."""

    def __init__(
        self, url: str, project: int, text: str, batch: int, stop: threading.Event
    ) -> None:
        super().__init__()
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute(GENERIC)
        self.pid = self.connection.info.backend_pid
        self.text, self.project, self.stop = text, project, stop
        self.batch = Batch(batch)
        self.done = self.deadlocks = 0

    def run(self) -> None:
        """Post until told to stop."""
        with self.connection.cursor() as cursor:
            while not self.stop.is_set():
                asked = {"project": self.project, "rows": self.batch.write(), "is_demo": False}
                try:
                    cursor.execute(self.text, asked, prepare=True)
                except psycopg.errors.DeadlockDetected:
                    self.deadlocks += 1
                self.done += 1


class Batch:
    """A batch of events as the statement takes it, with fresh ids every time."""

    def __init__(self, size: int) -> None:
        now = datetime.now(UTC)
        rows = [
            _row_of(make_row(index, event, redact_found), event, is_placed=True)
            for index in range(size)
            for event in [make_event(index, now)]
        ]
        self.text = json.dumps(rows)
        self.places = [PLACE.format(index) for index in range(size)]

    def write(self) -> str:
        """Give the text with ids nobody has had."""
        text, now = self.text, datetime.now(UTC)
        for place in self.places:
            text = text.replace(place, str(uuid7(now, os.urandom(10))))
        return text


def make_event(index: int, at: datetime) -> PostedEvent:
    """Make up one of a mixed batch: nine good attempts, then a failed one."""
    common: dict[str, Any] = {
        "event_id": UUID(PLACE.format(index)),
        "occurred_at": at,
        "correlation_id": f"run-{index}",
        "cycle": 1,
        "attempt": 1,
        "provider": "anthropic",
        "model": f"model-{index % MODELS}",
        "schema": "PlanPayload",
        "prompt_version": "v5",
        "environment": "prod",
        "source": "bench",
        "latency_ms": 1200 + index,
        "input_tokens": 900,
        "output_tokens": 300,
    }
    if index % 10:
        return PostedEvent(name="graph.plan.succeeded", **common)
    return PostedEvent(
        name="graph.plan.parse_invalid",
        parse_error_type=ParseErrorType.TRUNCATED,
        raw_output_preview="x" * 1000,
        **common,
    )


def compare() -> None:
    """Say whether every grain equals a recount of the events that were counted."""
    with connection.cursor() as cursor:
        sums = ", ".join(f"coalesce(sum({name}), 0)::bigint" for name in MEASURES)
        found = []
        for grain in GRAINS:
            cursor.execute(f"SELECT {sums} FROM diagnostics_rollup_{grain}")  # noqa: S608 - our own names
            found.append(cursor.fetchone())
    same = all(row == found[0] for row in found)
    say(f"grains agree: {same}; events counted: {found[0][0]}")


if __name__ == "__main__":
    main()
