"""What a run stores of its steps: statements fenced by the claim (C1), and its heartbeat."""

import time
from collections.abc import Mapping
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from pydantic import JsonValue
from pydantic_core import to_json

from diagnostics.storage.executing import execute_prepared
from plans import working
from plans.claims import Claim, LeaseLostError, lease
from plans.models import Run
from plans.runners.prepared import Prepared
from plans.sql import statement
from plans.submitting import owner_of

logger = structlog.get_logger(__name__)

_RETRY_SECONDS = 0.2
STORE_STEPS = Prepared("store_steps")
StoredRow = Mapping[str, Any]
# What others refer to, under the names of the working store.
Outputs = Mapping[str, JsonValue]


class StepStore:
    """Writes for one claim, and renews it with the same connection."""

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

    def _write_rows(self, rows: Mapping[int, StoredRow]) -> None:
        texts = {
            "run": self._run.id_text,
            "token": str(self._claim.token),
            "rows": to_json(list(rows.values())).decode(),
        }
        self._note(STORE_STEPS.ask(texts))

    def _beat(self) -> None:
        given = {
            "run": self._run.pk,
            "token": self._claim.token,
            "lease": lease(),
        }
        found = execute_prepared(statement("beat_run"), given)
        self._note(found[0][0] if found else None)

    def _note(self, is_cancelled: bool | None) -> None:
        """Note what a statement says; nothing when the claim is not the run's any more."""
        if is_cancelled is None:
            raise LeaseLostError(str(self._run.pk))
        self._is_cancelled = is_cancelled


def _is_any_final(rows: Mapping[int, StoredRow]) -> bool:
    return any(row["state"] == "final" for row in rows.values())
