"""Rows of what was found at slices: in a minute of now, or in the past."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from diagnostics.alerting.evaluation import DetectorEvaluation
from diagnostics.alerting.rules import RuleDefinition
from diagnostics.alerting.states import SliceStatus
from diagnostics.store.sql import statement


def evaluation_row(
    state_id: int, rule: RuleDefinition, look: DetectorEvaluation, standing: SliceStatus
) -> dict[str, Any]:
    """Return what a look found as `alert_evaluations` wants it."""
    return {
        "id": state_id,
        "k": look.k,
        "n": look.n,
        "value": look.value,
        "bound": look.bound,
        "rule_version": rule.version,
        "verdict": look.said,
        "state_after": standing.state,
    }


def insert_evaluations(rows: Sequence[Mapping[str, Any]], slot: datetime | None) -> None:
    """Write what was found in one minute; without one, rows of the past name their own."""
    with connection.cursor() as cursor:
        cursor.execute(
            statement("alert_evaluations"),
            {"rows": json.dumps(rows), "slot": slot, "is_backfilled": slot is None},
        )
