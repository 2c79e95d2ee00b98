"""The writer of an inline run: a thread that commits whatever is queued, at once.

While one transaction is on its way to the disk, the results of the next steps gather;
they go into one statement together. The same thread renews the lease while nothing
happens, and hears whether the run was cancelled. Who has to wait for a commit makes it
itself when nobody else is at it: that saves two changes of thread.

Inside somebody's transaction everything stays on its connection: `DirectCommit`.
"""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Protocol

import structlog
from django.db import (
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)
from pydantic import JsonValue
from pydantic_core import to_json

from diagnostics.executing import execute_prepared
from plans import working
from plans.claims import Claim, LeaseLostError, lease
from plans.models import Run
from plans.runners.threads import writers
from plans.sql import statement
from plans.submitting import owner_of

logger = structlog.get_logger(__name__)

# How long results gather when nobody waits for them.
_GATHER_SECONDS = 0.002
_MOST_QUEUED = 4_000
_RETRY_SECONDS = 0.2
_Row = Mapping[str, Any]
# What others refer to, under the names of the working store.
_Outputs = Mapping[str, JsonValue]
_NONE: _Outputs = {}


class Commit(Protocol):
    """Where the rows of steps go."""

    is_cancelled: bool

    def put(self, index: int, row: _Row, outputs: _Outputs = _NONE) -> None:
        """Store a row soon; a later row of the same step takes its place."""
        ...

    def put_now(self, index: int, row: _Row) -> None:
        """Store a row, and all before it, and return when they are durable."""
        ...

    def close(self) -> None:
        """Return when everything is durable; raise what has gone wrong."""
        ...


class DirectCommit:
    """Stores each row at once, on the caller's connection."""

    def __init__(self, claim: Claim) -> None:
        self._store = _Store(claim)
        self.is_cancelled = claim.is_cancelled

    def put(self, index: int, row: _Row, outputs: _Outputs = _NONE) -> None:
        """Store a row."""
        self.is_cancelled = self._store.write({index: row}, outputs)

    def put_now(self, index: int, row: _Row) -> None:
        """Store a row."""
        self.put(index, row)

    def close(self) -> None:
        """There is nothing left to store."""


class GroupCommit:
    """Stores rows from a thread of its own, many in one transaction."""

    def __init__(self, claim: Claim) -> None:
        self._store = _Store(claim)
        self.is_cancelled = claim.is_cancelled
        lock = threading.Lock()
        # The thread waits for rows, others wait until theirs are durable.
        self._queued = threading.Condition(lock)
        self._stored = threading.Condition(lock)
        self._committing = threading.Lock()
        self._rows: dict[int, _Row] = {}
        self._outputs: dict[str, JsonValue] = {}
        self._put = self._durable = self._awaited = 0
        self._queued_at = 0.0
        self._is_closing = False
        self._failure: BaseException | None = None
        self._thread: Future[None] = writers.submit(self._work)

    def put(self, index: int, row: _Row, outputs: _Outputs = _NONE) -> None:
        """Queue a row; waits only when thousands are queued already."""
        with self._queued:
            if not self._rows:
                self._queued_at = time.monotonic()
                self._queued.notify()
            self._queue(index, row)
            self._outputs.update(outputs)
            while len(self._rows) > _MOST_QUEUED and self._failure is None:
                self._stored.wait()

    def put_now(self, index: int, row: _Row) -> None:
        """Queue a row and wait until it is durable."""
        if connection.connection is not None and self._committing.acquire(False):
            try:
                self._lead(index, row)
            finally:
                self._committing.release()
            return
        with self._queued:
            self._queue(index, row)
            ticket = self._awaited = self._put
            self._queued.notify()
            while self._durable < ticket and self._failure is None:
                self._stored.wait()
            self._check()

    def close(self) -> None:
        """Wait until everything is durable, and let the thread go."""
        with self._queued:
            self._is_closing = True
            self._queued.notify()
        self._thread.result()
        self._check()

    def _lead(self, index: int, row: _Row) -> None:
        """Commit in the caller's thread, on its own connection."""
        with self._queued:
            self._queue(index, row)
        self._commit_queued()

    def _queue(self, index: int, row: _Row) -> None:
        self._check()
        self._rows[index] = row
        self._put += 1

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
            with self._stored:
                self._failure = error
                self._stored.notify_all()

    def _gather(self) -> bool:
        """Wait until rows are due, or the lease has to be renewed; False at the end."""
        with self._queued:
            while not self._is_closing and (seconds := self._seconds_to_wait()) > 0:
                self._queued.wait(seconds)
            return bool(self._rows) or not self._is_closing

    def _seconds_to_wait(self) -> float:
        if not self._rows:
            return self._store.seconds_to_beat()
        if self._awaited > self._durable:
            return 0.0
        return self._queued_at + _GATHER_SECONDS - time.monotonic()

    def _commit_queued(self) -> None:
        with self._queued:
            rows, self._rows = self._rows, {}
            outputs, self._outputs = self._outputs, {}
            ticket = self._put
        try:
            is_cancelled = self._store.write_surely(rows, outputs)
        except BaseException:
            # A time limit in the middle of it, perhaps: `close` stores them.
            with self._queued:
                self._rows = rows | self._rows
                self._outputs = outputs | self._outputs
            raise
        with self._stored:
            self.is_cancelled = is_cancelled
            self._durable = ticket
            self._stored.notify_all()


class _Store:
    """The statements, fenced by the claim."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._run = claim.run
        self._has_got_on = claim.starts <= 1
        self._lease_seconds = lease().total_seconds()
        self._beat_seconds = min(2.0, self._lease_seconds / 10)
        self._held_at = self._beat_at = time.monotonic()
        self._is_cancelled = claim.is_cancelled

    def seconds_to_beat(self) -> float:
        """Return how long nothing need be said to keep the lease."""
        return max(0.0, self._beat_at + self._beat_seconds - time.monotonic())

    def write_surely(self, rows: Mapping[int, _Row], outputs: _Outputs) -> bool:
        """Write, and again while the database is away and the lease lasts."""
        while True:
            try:
                return self.write(rows, outputs)
            except (OperationalError, InterfaceError) as error:
                logger.warning("steps_not_stored_yet", error=type(error).__name__)
                if time.monotonic() > self._held_at + self._lease_seconds:
                    raise
                connection.close()
                time.sleep(_RETRY_SECONDS)

    def write(self, rows: Mapping[int, _Row], outputs: _Outputs) -> bool:
        """Store rows and outputs in one transaction; return whether to stop.

        Raises LeaseLostError before anything is written when the claim is old.
        """
        asked_at = time.monotonic()
        gets_on = not self._has_got_on and _is_any_final(rows)
        if outputs or gets_on:
            with transaction.atomic():
                self._write_rows(rows)
                working.put_all(self._run.project_id, owner_of(self._run.id), outputs)
                if gets_on:
                    Run.objects.filter(pk=self._run.pk).update(starts=1)
        elif rows:
            self._write_rows(rows)
        if gets_on:
            self._has_got_on = True
        if asked_at >= self._beat_at + self._beat_seconds:
            self._beat()
            self._held_at = self._beat_at = asked_at
        return self._is_cancelled

    def _write_rows(self, rows: Mapping[int, _Row]) -> None:
        self._ask("store_steps", {"rows": to_json(list(rows.values())).decode()})

    def _beat(self) -> None:
        self._ask("beat_run", {"lease": lease()})

    def _ask(self, name: str, given: dict[str, Any]) -> None:
        fence: dict[str, Any] = {"run": self._run.pk, "token": self._claim.token}
        found = execute_prepared(statement(name), fence | given)
        if not found:
            raise LeaseLostError(str(self._run.pk))
        self._is_cancelled = found[0][0]


def _is_any_final(rows: Mapping[int, _Row]) -> bool:
    return any(row["state"] == "final" for row in rows.values())


def open_commit(claim: Claim) -> Commit:
    """Return the writer that fits: a thread, or the transaction the caller is in."""
    return DirectCommit(claim) if connection.in_atomic_block else GroupCommit(claim)
