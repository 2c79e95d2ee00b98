"""The statements that store steps, fenced by the claim, and the heartbeat."""

import time
from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

import structlog
from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
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

from diagnostics.store.leases import LeaseLostError
from diagnostics.store.sql import GENERIC, execute, execute_prepared, number_places, statement
from plans.models.run import Run
from plans.runs import working_store
from plans.runs.claims import RunClaim, lease

_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class Prepared:
    """A statement of `plans/runs/sql` whose values are texts and whose answer is a boolean."""

    def __init__(self, name: str) -> None:
        self._text = statement(name)
        self._numbered, self._names = number_places(self._text)
        self._key = f"plans_{name}".encode()
        self._known: WeakSet[Connection[Any]] = WeakSet()

    def ask(self, values: Mapping[str, str]) -> bool | None:
        """Return the first column of the first row, or None when there is no row.

        Commits by itself, unless the caller is in a transaction.
        """
        django = connections[DEFAULT_DB_ALIAS]
        django.ensure_connection()
        if django.in_atomic_block:
            rows = execute_prepared(self._text, values)
            return bool(rows[0][0]) if rows else None
        with django.wrap_database_errors:
            result = self._send(django.connection, values)
        return result.get_value(0, 0) == b"t" if result.ntuples else None

    def _send(self, server: Connection[Any], values: Mapping[str, str]) -> PGresult:
        if server not in self._known:
            self._prepare(server)
        given = [values[name].encode() for name in self._names]
        try:
            return self._execute(server, given)
        except InvalidSqlStatementName:
            # psycopg forgets all that is prepared when something is rolled back.
            self._prepare(server)
            return self._execute(server, given)

    def _execute(self, server: Connection[Any], given: list[bytes]) -> PGresult:
        server.pgconn.send_query_prepared(self._key, given)
        return _answer(server)

    def _prepare(self, server: Connection[Any]) -> None:
        server.pgconn.send_query_params(GENERIC.encode(), None)
        _answer(server)
        server.pgconn.send_prepare(self._key, self._numbered)
        _answer(server)
        self._known.add(server)


def _answer(server: Connection[Any]) -> PGresult:
    """Wait as a cursor would, so that signals are heard meanwhile."""
    result: PGresult = server.wait(generators.execute(server.pgconn))[-1]
    if result.status not in _DONE:
        raise error_from_result(result)
    return result


logger = structlog.get_logger(__name__)
_RETRY_SECONDS = 0.2
STORE_STEPS = Prepared("store_steps")
StoredRow = Mapping[str, Any]
# What others refer to, under the names of the working store.
Outputs = Mapping[str, JsonValue]


class StepStore:
    """Writes for one claim, and renews it with the same connection."""

    def __init__(self, claim: RunClaim) -> None:
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

    def write_surely(self, rows: Mapping[int, StoredRow], outputs: Outputs) -> bool:
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

    def write(self, rows: Mapping[int, StoredRow], outputs: Outputs) -> bool:
        """Store rows and outputs in one transaction; return whether to stop.

        Raises LeaseLostError before anything is written when the claim is old.
        """
        asked_at = time.monotonic()
        gets_on = not self._has_got_on and any(row["state"] == "final" for row in rows.values())
        if outputs or gets_on:
            with transaction.atomic():
                self._write_rows(rows)
                working_store.put_all(self._run, outputs)
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

    def _write_rows(self, rows: Mapping[int, StoredRow]) -> None:
        texts = {
            "run": self._run.id_text,
            "token": str(self._claim.token),
            "rows": to_json(list(rows.values())).decode(),
        }
        self._note(STORE_STEPS.ask(texts))

    def _beat(self) -> None:
        given = {"run": self._run.pk, "token": self._claim.token, "lease": lease()}
        found = execute("beat_run", given)
        self._note(found[0][0] if found else None)

    def _note(self, is_cancelled: bool | None) -> None:
        """Note what a statement says; nothing when the claim is not the run's any more."""
        if is_cancelled is None:
            raise LeaseLostError(str(self._run.pk))
        self._is_cancelled = is_cancelled
