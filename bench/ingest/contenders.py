"""Whoever takes part, behind one way of asking what an event costs."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from django.db import connection

from bench.ingest.in_process import InProcess
from bench.ingest.measuring import cost_of, get_all, parent_of, post_all
from bench.ingest.peers import SENTRY_KEY, start_bugsink, start_phoenix, to_envelope, to_spans
from bench.ingest.workload import Workload, to_body
from bench.servers import start_web
from config.local.parts import web_arguments
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.projects import ensure_default_project, issue_key
from diagnostics.store.partitions import ensure_partitions

MICRO = 1e6
BUGSINK_EVENTS = 50


def plain_arguments(port: int) -> list[str]:
    """Return what Python executes to serve WSGI with granian, one process, four threads."""
    words = ["-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1"]
    words += ["--port", str(port), "--workers", "1", "--blocking-threads", "4"]
    words += ["--no-access-log", "--log-level", "warning"]
    return [*words, "bench.ingest.plain_wsgi:application"]


class Contenders:
    """Servers that run until the stack ends."""

    def __init__(
        self, stack: ExitStack, ports: Mapping[str, int], folder: Path, *, has_peers: bool
    ) -> None:
        """Start ours and the plain one, and the peers when they are wanted."""
        ensure_partitions()
        project = ensure_default_project()
        self._key = issue_key(project, "bench", [Scope.INGEST, Scope.READ]).text
        self._ports, self._workload = ports, Workload()
        connection.ensure_connection()
        self._database = parent_of(connection.connection.info.backend_pid)
        self._groups = {
            "ours": start_web(ports["ours"], web_arguments(ports["ours"]), stack),
            "plain": start_web(ports["plain"], plain_arguments(ports["plain"]), stack),
        }
        self._in_process = InProcess(os.environ["DATABASE_URL"], project.pk)
        self._has_peers = has_peers
        if has_peers:
            self._start_peers(folder, stack)

    def _start_peers(self, folder: Path, stack: ExitStack) -> None:
        for name in ("phoenix", "bugsink"):
            (folder / name).mkdir()
        port, home = self._ports["phoenix"], folder / "phoenix"
        self._groups["phoenix"] = start_phoenix(port, home, stack)
        port, home = self._ports["bugsink"], folder / "bugsink"
        self._groups["bugsink"], self._bugsink_project = start_bugsink(port, home, stack)

    def post(
        self, name: str, size: int, count: int, pack: Callable[[bytes], bytes] | None = None
    ) -> float:
        """Post batches to ours or the plain one; CPU us per event, PostgreSQL included."""
        bodies = list(self._workload.bodies(size, count))
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        if pack:
            bodies = [pack(body) for body in bodies]
            headers["Content-Encoding"] = "gzip"
        work = partial(post_all, self._ports[name], "/api/v1/events", bodies, headers)
        cpu = cost_of(work, [self._groups[name], self._database])
        return cpu / (size * count) * MICRO

    def ask(self, name: str, path: str, count: int) -> float:
        """Ask for a page again and again; CPU us of each answer, PostgreSQL included."""
        work = partial(get_all, self._ports[name], path, count)
        return cost_of(work, [self._groups[name], self._database]) / count * MICRO

    def in_process(self, size: int, count: int) -> tuple[float, float, float]:
        """Store batches in this process, and COPY the same rows; CPU us per event.

        Of storing, of that the part of PostgreSQL, and of COPY.
        """
        batches = [self._workload.batch(size) for _ in range(count)]
        self._in_process.note_deltas()
        here, there = self._in_process.store([to_body(batch) for batch in batches])
        ids = [[event["event_id"] for event in batch] for batch in batches]
        floor = self._in_process.copy(ids)
        each = MICRO / (size * count)
        return (here + there) * each, there * each, floor * each

    def peers(self, phoenix_batch: int, events: int) -> Iterator[tuple[str, float]]:
        """Send the same kind of events to the peers, each in the way that it is made for."""
        if not self._has_peers:
            return
        yield f"phoenix {phoenix_batch}", self._phoenix(phoenix_batch, 2)
        yield "bugsink 1", self._bugsink(min(events, BUGSINK_EVENTS))

    def _phoenix(self, size: int, count: int) -> float:
        bodies = [to_spans(self._workload.batch(size)) for _ in range(count)]
        headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
        return self._post_to_peer("phoenix", "/v1/traces", bodies, headers) / (size * count)

    def _bugsink(self, count: int) -> float:
        bodies = [to_envelope(event) for event in self._workload.batch(count)]
        headers = {
            "Content-Type": "application/x-sentry-envelope",
            "Content-Encoding": "gzip",
            "X-Sentry-Auth": f"Sentry sentry_version=7, sentry_key={SENTRY_KEY}",
        }
        path = f"/api/{self._bugsink_project}/envelope/"
        return self._post_to_peer("bugsink", path, bodies, headers) / count

    def _post_to_peer(
        self, name: str, path: str, bodies: Sequence[bytes], headers: dict[str, str]
    ) -> float:
        """Post bodies; CPU us of the peer, which answers first and stores later."""
        work = partial(post_all, self._ports[name], path, bodies, headers)
        return cost_of(work, [self._groups[name]], waits=True) * MICRO
