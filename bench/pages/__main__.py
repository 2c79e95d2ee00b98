"""What every page of the console costs when there is much.

    python -m bench.pages [--events 100000] [--rounds 20] [--folder DIR]

Fills a server of its own by COPY, adds the demo's goals, runs and incidents, starts the
web server as `make run` does and asks for each page over HTTP: milliseconds to the first
byte, bytes, nodes, requests a page loads with; queries are counted in this process.
Budgets at 100,000 events: 100 ms (150 at 10 million), 60 KB, 1,500 nodes, 4 requests.
"""

import argparse
import os
import secrets
import socket
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.demonstrating import load
from bench.database import running_database, say
from bench.ingest.servers import start_web
from bench.pages.looking import Look, look_at
from bench.queries import DAYS, fill
from diagnostics import clock
from diagnostics.models import Membership, Project
from diagnostics.partitions import ensure_partitions
from tests.console_pages import console_pages

LARGE = 1_000_000
MOST_BYTES, MOST_NODES, MOST_REQUESTS = 60 * 1024, 1_500, 4
NAME = "bench"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=None)
    asked = parser.parse_args()
    with _serving(asked.events, asked.folder) as (client, project, port):
        cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
        headers = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}"}
        say(f"{'page':44}{'p50 ms':>8}{'p95 ms':>8}{'KB':>7}{'nodes':>7}{'queries':>8}")
        most_ms = 150 if asked.events >= LARGE else 100
        for path in console_pages(client, project):
            queries = _queries(client, path)
            look = look_at(port, path, headers, asked.rounds)
            say(_line(path, look, queries, most_ms))


@contextmanager
def _serving(events: int, folder: Path | None) -> Iterator[tuple[Client, Project, int]]:
    with ExitStack() as stack:
        url = stack.enter_context(running_database(folder))
        project, user = _fill(events)
        client = Client()
        client.force_login(user)
        os.environ.update(
            DATABASE_URL=url,
            BROKER_URL="memory://",
            DJANGO_SETTINGS_MODULE="config.settings",
            FAILSOFT_SECRET_KEY=settings.SECRET_KEY,
            FAILSOFT_WORKING_KEY=b64encode(secrets.token_bytes(32)).decode(),
            FAILSOFT_STATIC_HASHED="false",
        )
        port = _free_port()
        start_web(port, "config.wsgi:application", stack)
        yield client, project, port


def _fill(events: int) -> tuple[Project, User]:
    project = Project.objects.create(slug=NAME, name="Bench")
    user = User.objects.create_user(NAME)
    Membership.objects.create(project=project, user=user, role="admin")
    now = clock.now()
    ensure_partitions((now - timedelta(days=DAYS + 1)).date(), now.date())
    fill(project.pk, events)
    load(project, now, volume=0.1)
    return project, user


def _queries(client: Client, path: str) -> int:
    client.get(path)
    with CaptureQueriesContext(connection) as seen:
        client.get(path)
    return len(seen)


def _line(path: str, look: Look, queries: int, most_ms: int) -> str:
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
    told = f"  over: {', '.join(over)}" if over else ""
    return (
        f"{path[:43]:44}{look.p50_ms:8.1f}{look.p95_ms:8.1f}{look.size / 1024:7.1f}"
        f"{look.nodes:7}{queries:8}{told}"
    )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    main()
