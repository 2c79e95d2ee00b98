"""The prepared statements that store steps, fenced by the claim, and the heartbeat."""

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
    """A prepared statement of `plans/runs/sql` with text parameters and a boolean result."""

    def __init__(self, name: str) -> None:
        self._text = statement(name)
        self._numbered, self._names = number_places(self._text)
        self._key = f"plans_{name}".encode()
        self._known: WeakSet[Connection[Any]] = WeakSet()

    def run(self, values: Mapping[str, str]) -> bool | None:
        """Return the first column of the first row, or None when there is no row.

        Commits, unless the caller is in a transaction.
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
        server.pgconn.send_query_params(GENERIC.encode(), None)
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
        """Return the seconds until the next heartbeat."""
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
        rows = execute("beat_run", params)
        self._note(rows[0][0] if rows else None)

    def _note(self, is_cancelled: bool | None) -> None:
        """Store the cancellation flag of a statement; None means that the claim is lost."""
        if is_cancelled is None:
            raise LeaseLostError(str(self._run.pk))
        self._is_cancelled = is_cancelled
