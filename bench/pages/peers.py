"""Our pages beside those of Bugsink and Arize Phoenix, with as many events in each.

    python -m bench.pages.peers [--events 100000] [--rounds 20] [--folder DIR [--keep]]

Both peers are installed once (`bench.ingest.peers`), sent a few hundred events through
their own door, and given copies of those rows over thirty days in their SQLite until there
are as many. All pages are asked in turn, round by round, over HTTP: milliseconds to the
first byte and bytes. Phoenix draws its pages in the browser: what is timed are the queries
that they send, taken from its own scripts. Bugsink is sent failures only, as it is meant to
be: its events are all failures, of ours about a fifth is.
"""

import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

from agents.goals.models import Goal
from bench.database import say
from bench.ingest import peers
from bench.ingest.measuring import post_all, when_quiet
from bench.ingest.workload import Workload
from bench.pages.__main__ import filling_of, parser_of
from bench.pages.copying import copy_bugsink, copy_phoenix
from bench.pages.serving import Served, serving
from bench.servers import free_port

SENT = 500
DAYS = timedelta(days=30)
PROJECT = "UHJvamVjdDox"
"""Phoenix's own name of its first project."""
LISTED, HEADED, TRACED = ("ProjectPageQueriesSpansQuery", "ProjectPageQuery", "TraceDetailsQuery")
SIGN_IN = """
from importlib import import_module
from django.conf import settings
from django.contrib.auth import get_user_model
user, _ = get_user_model().objects.get_or_create(
    username='bench', defaults={'is_superuser': True, 'is_staff': True})
session = import_module(settings.SESSION_ENGINE).SessionStore()
session['_auth_user_id'] = str(user.pk)
session['_auth_user_backend'] = settings.AUTHENTICATION_BACKENDS[0]
session['_auth_user_hash'] = user.get_session_auth_hash()
session.save()
print(settings.SESSION_COOKIE_NAME + '=' + session.session_key)
"""


@dataclass(slots=True)
class Asked:
    """A page, or a query of one, and what it cost each time."""

    name: str
    port: int
    path: str
    headers: dict[str, str]
    body: bytes | None = None
    taken: list[float] = field(default_factory=list)
    size: int = 0

    def ask(self) -> None:
        """Ask once over a new connection."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.connect()
        began = time.perf_counter()
        method = "GET" if self.body is None else "POST"
        connection.request(method, self.path, self.body, self.headers)
        answer = connection.getresponse()
        self.taken.append(1000 * (time.perf_counter() - began))
        told = answer.read()
        connection.close()
        if answer.status != 200 or b'"errors":' in told[:400]:
            raise RuntimeError(f"{self.name}: {answer.status} {told[:300]!r}")
        self.size = len(told)


def main() -> None:
    asked = parser_of(__doc__).parse_args()
    with ExitStack() as stack:
        fill = filling_of(asked.events)
        served = stack.enter_context(serving(fill, asked.folder, is_kept=asked.keep))
        home = Path(stack.enter_context(TemporaryDirectory()))
        pages = [
            *_ours(served),
            *_bugsink(asked.events, home, stack),
            *_phoenix(asked.events, home, stack),
        ]
        for _ in range(asked.rounds + 1):
            for page in pages:
                page.ask()
    say(f"{'page':52}{'p50 ms':>9}{'p95 ms':>9}{'KB':>8}")
    for page in pages:
        say(_line(page))


def _line(page: Asked) -> str:
    # The first time only warms it.
    taken = sorted(page.taken[1:])
    p50, p95 = taken[len(taken) // 2], taken[ceil(0.95 * len(taken)) - 1]
    return f"{page.name:52}{p50:9.1f}{p95:9.1f}{page.size / 1024:8.1f}"


def _ours(served: Served) -> Iterator[Asked]:
    headers = {"Cookie": "=".join(served.cookie)}
    goal = Goal.objects.filter(project=served.project).order_by("-pk").first()
    paths = ["/failures/", "/failures/?range=30d"]
    paths += [f"/runs/{goal.correlation_id}/"] if goal else []
    for path in paths:
        name = path.partition("-")[0]
        yield Asked(f"ours {name}", served.port, path, headers)


def _bugsink(events: int, home: Path, stack: ExitStack) -> Iterator[Asked]:
    folder, port = home / "bugsink", free_port()
    folder.mkdir()
    group, project = peers.start_bugsink(port, folder, stack)
    failures = (e for e in Workload().batch(3 * SENT) if "raw_output_preview" in e)
    bodies = [peers.to_envelope(event) for event, _ in zip(failures, range(SENT), strict=False)]
    headers = {
        "Content-Type": "application/x-sentry-envelope",
        "Content-Encoding": "gzip",
        "X-Sentry-Auth": f"Sentry sentry_version=7, sentry_key={peers.SENTRY_KEY}",
    }
    post_all(port, f"/api/{project}/envelope/", bodies, headers)
    when_quiet([group])
    issue, count = copy_bugsink(folder / "db.sqlite3", events, DAYS)
    cookie = peers.manage_bugsink(folder, "shell", "-c", SIGN_IN).split()[-1]
    say(f"bugsink: {count:,} events")
    signed = {"Cookie": cookie, "Host": f"127.0.0.1:{port}"}
    for name, path in (
        ("issue list", f"/issues/{project}/"),
        ("event of an issue", f"/issues/issue/{issue}/event/last/"),
    ):
        yield Asked(f"Bugsink, {name}", port, path, signed)


def _phoenix(events: int, home: Path, stack: ExitStack) -> Iterator[Asked]:
    folder, port = home / "phoenix", free_port()
    folder.mkdir()
    group = peers.start_phoenix(port, folder, stack)
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
    post_all(port, "/v1/traces", [peers.to_spans(Workload().batch(SENT))], headers)
    when_quiet([group])
    trace, count = copy_phoenix(folder / "phoenix.db", events, DAYS)
    say(f"phoenix: {count:,} spans")
    until = datetime.now(UTC) + timedelta(hours=1)
    span = {"start": (until - DAYS - DAYS).isoformat(), "end": until.isoformat()}
    texts = _queries((LISTED, HEADED, TRACED))
    for name, query, asked in (
        ("spans: list", LISTED, {"timeRange": span, "rootSpansOnly": True}),
        ("spans: head", HEADED, {"timeRange": span}),
        ("trace of a call", TRACED, {"traceId": trace}),
    ):
        body = {"query": texts[query], "variables": {"id": PROJECT, **asked}}
        told = {"Content-Type": "application/json"}
        yield Asked(f"Phoenix, {name}", port, "/graphql", told, json.dumps(body).encode())


def _queries(names: Sequence[str]) -> dict[str, str]:
    """Read the queries that Phoenix's pages send from its scripts."""
    home = peers.install(peers.PHOENIX).parent / "lib"
    found: dict[str, str] = {}
    for script in home.glob("python*/site-packages/phoenix/server/static/assets/*.js"):
        text = script.read_text(encoding="utf-8", errors="replace")
        for name in names:
            if told := re.search(rf"text:`(query {name}\(.*?)`", text, re.DOTALL):
                found[name] = told[1]
    if missing := set(names) - set(found):
        sys.exit(f"this Phoenix does not send {', '.join(sorted(missing))}")
    return found


if __name__ == "__main__":
    main()
