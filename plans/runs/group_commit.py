"""The writer of an inline run: a thread that commits queued rows in groups.

Steps are stored by prepared statements, fenced by the claim.

While one transaction is being flushed, the results of the next steps are queued; they are
written by one statement. The same thread renews the lease while it is idle, and reads
whether the run was cancelled. A caller that has to wait for a commit does it itself when
the writer is idle, which saves two thread switches.

Inside a transaction of the caller, `DirectCommit` uses the connection of the caller.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple
from weakref import WeakSet

import structlog
from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
    transaction,
)
from psycopg import Connection, generators
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from pydantic import JsonValue
from pydantic_core import to_json

from diagnostics.store import sql
from diagnostics.store.leases import LeaseLostError
from plans.models.run import Run
from plans.runs import working_store
from plans.runs.claims import RunClaim, lease
from plans.runs.worker_threads import writers

_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class Prepared:
    """A prepared statement of `plans/runs/sql` with text parameters and a boolean result."""

    def __init__(self, name: str) -> None:
        self._text = sql.statement(name)
        self._numbered, self._names = sql.number_places(self._text)
        self._key = f"plans_{name}".encode()
        self._known: WeakSet[Connection[Any]] = WeakSet()

    def run(self, values: Mapping[str, str]) -> bool | None:
        """Return the first column of the first row, or None when there is no row.

        Commits, unless the caller is in a transaction.
        """
        django = connections[DEFAULT_DB_ALIAS]
        django.ensure_connection()
        if django.in_atomic_block or not sql.is_own(django.connection):
            rows = sql.execute_prepared(self._text, values)
            return bool(rows[0][0]) if rows else None
        with django.wrap_database_errors:
            result = self._send(django.connection, values)
        return result.get_value(0, 0) == b"t" if result.ntuples else None

    def _send(self, server: Connection[Any], values: Mapping[str, str]) -> PGresult:
        if server not in self._known:
            self._prepare(server)
        params = [values[name].encode() for name in self._names]
        try:
            return self._execute(server, params)
        except InvalidSqlStatementName:
            # psycopg drops its prepared statements on a rollback.
            self._prepare(server)
            return self._execute(server, params)

    def _execute(self, server: Connection[Any], params: list[bytes]) -> PGresult:
        server.pgconn.send_query_prepared(self._key, params)
        return _answer(server)

    def _prepare(self, server: Connection[Any]) -> None:
        server.pgconn.send_query_params(sql.GENERIC.encode(), None)
        _answer(server)
        server.pgconn.send_prepare(self._key, self._numbered)
        _answer(server)
        self._known.add(server)


def _answer(server: Connection[Any]) -> PGresult:
    """Wait for the result as a cursor does, so that signals are handled."""
    result: PGresult = server.wait(generators.execute(server.pgconn))[-1]
    if result.status not in _DONE:
        raise error_from_result(result)
    return result


logger = structlog.get_logger(__name__)
_RETRY_SECONDS = 0.2
STORE_STEPS = Prepared("store_steps")
StoredRow = Mapping[str, Any]
# Outputs that other steps refer to, by their names in the working store.
Outputs = Mapping[str, JsonValue]


class StepStore:
    """Stores the steps of one claim, and renews it over the same connection."""

    def __init__(self, claim: RunClaim) -> None:
        self._claim = claim
        self._run = claim.run
        self._has_progressed = claim.starts <= 1
        self._lease_seconds = lease().total_seconds()
        self._beat_seconds = min(2.0, self._lease_seconds / 10)
        self._held_at = self._beat_at = time.monotonic()
        self._is_cancelled = claim.is_cancelled

    def seconds_to_beat(self) -> float:
        return max(0.0, self._beat_at + self._beat_seconds - time.monotonic())

    def write_surely(self, rows: Mapping[int, StoredRow], outputs: Outputs) -> bool:
        """Write; retry while the database is unavailable and the lease lasts."""
        while True:
            try:
                return self.write(rows, outputs)
            except (OperationalError, InterfaceError) as error:
                logger.warning("steps_not_stored_yet", error=type(error).__name__)
                if time.monotonic() > self._held_at + self._lease_seconds:
                    raise
                connection.close()
                time.sleep(_RETRY_SECONDS)

    def write(self, rows: Mapping[int, StoredRow], outputs: Outputs) -> bool:
        """Store rows and outputs in one transaction; return whether the run is cancelled.

        Raises LeaseLostError before anything is written when the claim is lost.
        """
        written_at = time.monotonic()
        has_progress = not self._has_progressed and any(
            row["state"] == "final" for row in rows.values()
        )
        if outputs or has_progress:
            with transaction.atomic():
                self._write_rows(rows)
                working_store.put_all(self._run, outputs)
                if has_progress:
                    Run.objects.filter(pk=self._run.pk).update(starts=1)
        elif rows:
            self._write_rows(rows)
        if has_progress:
            self._has_progressed = True
        if written_at >= self._beat_at + self._beat_seconds:
            self._beat()
            self._held_at = self._beat_at = written_at
        return self._is_cancelled

    def _write_rows(self, rows: Mapping[int, StoredRow]) -> None:
        texts = {
            "run": self._run.id_text,
            "token": str(self._claim.token),
            "rows": to_json(list(rows.values())).decode(),
        }
        self._note(STORE_STEPS.run(texts))

    def _beat(self) -> None:
        params = {"run": self._run.pk, "token": self._claim.token, "lease": lease()}
        rows = sql.execute("beat_run", params)
        self._note(rows[0][0] if rows else None)

    def _note(self, is_cancelled: bool | None) -> None:
        """Store the cancellation flag of a statement; None means that the claim is lost."""
        if is_cancelled is None:
            raise LeaseLostError(str(self._run.pk))
        self._is_cancelled = is_cancelled


# How long results are collected while no caller waits for them.
_GATHER_SECONDS = 0.004
_MOST_QUEUED = 4_000
_NONE: Outputs = {}


class DirectCommit:
    def __init__(self, claim: RunClaim) -> None:
        self._store = StepStore(claim)
        self.is_cancelled = claim.is_cancelled

    def put(self, index: int, row: StoredRow, outputs: Outputs = _NONE) -> None:
        self.is_cancelled = self._store.write({index: row}, outputs)

    def put_now(self, index: int, row: StoredRow) -> None:
        self.put(index, row)

    def close(self) -> None:
        """Do nothing: every row is stored already."""


class _Queued(NamedTuple):
    """A queued row; `stored` is set when it is committed."""

    position: int
    row: StoredRow
    outputs: Outputs
    stored: threading.Event | None


class GroupCommit:
    """Stores rows from a separate thread, many in one transaction.

    Queueing a row takes no lock: append and popleft of a deque are atomic. Only an idle
    thread has to be woken.
    """

    def __init__(self, claim: RunClaim) -> None:
        self._store = StepStore(claim)
        self.is_cancelled = claim.is_cancelled
        self._queue: deque[_Queued] = deque()
        self._committing = threading.Lock()
        self._commits = 0
        lock = threading.Lock()
        # The thread waits for rows; a caller that fills the queue waits until it is drained.
        self._changed = threading.Condition(lock)
        self._drained = threading.Condition(lock)
        self._is_idle = self._is_urgent = self._is_closing = False
        self._failure: BaseException | None = None
        self._thread: Future[None] = writers.submit(self._work)

    def put(self, index: int, row: StoredRow, outputs: Outputs = _NONE) -> None:
        """Queue a row; block only when thousands are queued already.

        A later row of the same step replaces it.
        """
        self._check()
        self._queue.append(_Queued(index, row, outputs, None))
        if self._is_idle:
            self._wake()
        elif len(self._queue) > _MOST_QUEUED:
            with self._drained:
                while len(self._queue) > _MOST_QUEUED and self._failure is None:
                    self._drained.wait()

    def put_now(self, index: int, row: StoredRow) -> None:
        """Store a row and all before it; return when they are durable."""
        self._check()
        if connection.connection is not None and self._committing.acquire(False):
            try:
                self._queue.append(_Queued(index, row, _NONE, None))
                self._commit_queued()
            finally:
                self._committing.release()
            return
        stored = threading.Event()
        self._queue.append(_Queued(index, row, _NONE, stored))
        self._is_urgent = True
        self._wake()
        # A failure releases callers that wait; later ones raise it.
        if self._failure is None:
            stored.wait()
        self._check()

    def close(self) -> None:
        """Wait until every row is durable; raise the failure of the writer, if any."""
        self._is_closing = True
        self._wake()
        self._thread.result()
        self._check()

    def _wake(self) -> None:
        with self._changed:
            self._is_idle = False
            self._changed.notify()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        close_old_connections()
        try:
            while self._gather():
                with self._committing:
                    self._commit_queued()
        except BaseException as error:  # noqa: BLE001 - raised again where rows are put
            self._failure = error
            self._release(list(self._queue))

    def _gather(self) -> bool:
        """Wait until rows are due or the lease has to be renewed; return False at the end."""
        with self._changed:
            while not (self._is_urgent or self._is_closing or self._store.seconds_to_beat() <= 0):
                oldest = self._queue[0] if self._queue else None
                commits = self._commits
                self._changed.wait(_GATHER_SECONDS)
                if self._is_old(oldest):
                    break
                if oldest is None and commits == self._commits:
                    self._sleep()
            self._is_urgent = False
            return bool(self._queue) or not self._is_closing

    def _is_old(self, oldest: _Queued | None) -> bool:
        """Whether a row is still the oldest in the queue, so no other thread committed it."""
        try:
            return oldest is not None and self._queue[0] is oldest
        except IndexError:
            return False

    def _sleep(self) -> None:
        self._is_idle = True
        if not (self._queue or self._is_urgent or self._is_closing):
            self._changed.wait(self._store.seconds_to_beat())
        self._is_idle = False

    def _commit_queued(self) -> None:
        queued = [self._queue.popleft() for _ in range(len(self._queue))]
        rows = {entry.position: entry.row for entry in queued}
        outputs = {name: output for entry in queued for name, output in entry.outputs.items()}
        try:
            self.is_cancelled = self._store.write_surely(rows, outputs)
        except BaseException:
            # Possibly a time limit in mid-write: `close` stores them.
            self._queue.extendleft(reversed(queued))
            self._wake()
            raise
        self._commits += 1
        self._release(queued)

    def _release(self, queued: Iterable[_Queued]) -> None:
        for entry in queued:
            if entry.stored is not None:
                entry.stored.set()
        with self._drained:
            self._drained.notify_all()


def open_commit(claim: RunClaim) -> DirectCommit | GroupCommit:
    """Return the writer of a claim: direct inside a transaction, else a thread."""
    return DirectCommit(claim) if connection.in_atomic_block else GroupCommit(claim)
