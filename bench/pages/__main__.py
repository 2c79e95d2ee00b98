"""What every page of the console costs when there is much.

    python -m bench.pages [--events 100000] [--rounds 20] [--folder DIR [--keep]] [--page /]

Fills a server of its own by COPY, adds the demo's goals, runs and incidents, starts the
web server as `make run` does, judges the project every minute as the scheduler has it done, and
asks for each page over HTTP, and for those with filters in other ranges and narrowed, too:
milliseconds to the first byte and until the first view is whole, of CPU (web server and
PostgreSQL, the first view included), bytes, nodes, requests a page loads with; queries are
counted in this process. Budgets at 100,000 events: 100 ms (150 at 10 million), 60 KB, 1,500
nodes, 4 requests; a page over one of them is explained by a profile. With `--keep` the folder
is filled once and asked again the next time, while its events are recent.
"""

import argparse
import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.demo.loading import load
from bench.database import say
from bench.filling.loading import fill
from bench.idle import Usage, usage_of
from bench.pages.asked import QUERIES
from bench.pages.explaining import explain
from bench.pages.looking import Look, look_at
from bench.pages.serving import serving
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.statuses import store_statuses
from diagnostics.store.retention import index_words
from tests.console_pages import console_pages

LARGE = 1_000_000
MINUTE = 60.0
OVER = "  over: "
MOST_BYTES, MOST_NODES, MOST_REQUESTS = 60 * 1024, 1_500, 4


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--page", default=None)
    asked = parser.parse_args()
    if asked.keep and asked.folder is None:
        parser.error("--keep needs --folder")
    # Addresses that only act are asked too, and say that they do.
    logging.getLogger("django.request").setLevel(logging.CRITICAL)
    most_ms = 150 if asked.events >= LARGE else 100
    fill = filling_of(asked.events)
    with serving(fill, asked.folder, is_kept=asked.keep) as served:
        headers = {"Cookie": "=".join(served.cookie)}
        times = "".join(f"{name:>8}" for name in ("first", "whole", "p50 ms", "p95 ms", "CPU ms"))
        say(f"{'page':56}{times}{'KB':>7}{'nodes':>7}{'queries':>8}")
        pages = console_pages(served.client, served.project)
        while index_words():
            pass
        judged = -MINUTE
        for path in [*pages, *QUERIES]:
            if asked.page not in (None, path.partition("?")[0]):
                continue
            if time.monotonic() - judged > MINUTE:
                store_statuses(served.project.pk, clock.now())
                judged = time.monotonic()
            queries = _queries(served.client, path)
            before = usage_of(os.getpid())
            look = look_at(served.port, path, headers, asked.rounds)
            cpu_ms = 1000 * _cpu_since(before) / (asked.rounds + 1)
            line = _line(path, look, cpu_ms, queries, most_ms)
            say(line)
            if OVER in line:
                say(explain(served.client, path))


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of how much is filled, where, and how often pages are asked for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--keep", action="store_true")
    return parser


def filling_of(events: int) -> Callable[[Project, str], None]:
    """Give what writes so many events, and the demo beside them."""

    def write(project: Project, url: str) -> None:
        fill(project.pk, events, url)
        load(project, clock.now(), volume=0.1)

    return write


def _queries(client: Client, path: str) -> int:
    # Waits for what is judged, as a page does not.
    client.get(path, headers={"HX-Request": "true"})
    with CaptureQueriesContext(connection) as seen:
        client.get(path)
    return len(seen)


def _cpu_since(before: Mapping[int, Usage]) -> float:
    """Return the CPU seconds of the web server and PostgreSQL, without its upkeep."""
    return sum(
        usage.own_cpu - (before[pid].own_cpu if pid in before else 0)
        for pid, usage in usage_of(os.getpid()).items()
        if pid != os.getpid() and "autovacuum" not in usage.name
    )


def _line(path: str, look: Look, cpu_ms: float, queries: int, most_ms: int) -> str:
    over = [
        name
        for name, is_over in (
            ("first byte", look.p95_ms > most_ms),
            ("bytes", look.size > MOST_BYTES),
            ("nodes", look.nodes > MOST_NODES),
            ("requests", look.requests > MOST_REQUESTS),
            (f"status {look.status}", look.status != 200),
        )
        if is_over
    ]
    told = f"{OVER}{', '.join(over)}" if over else ""
    return (
        f"{path[:55]:56}{look.first_ms:8.1f}{look.whole_ms:8.1f}{look.p50_ms:8.1f}"
        f"{look.p95_ms:8.1f}{cpu_ms:8.0f}{look.size / 1024:7.1f}{look.nodes:7}{queries:8}{told}"
    )


if __name__ == "__main__":
    main()
