"""Calls and degraded runs for tests of alerts."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random

from django.db import connection

from diagnostics.accounts.models import Project
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.alerting.rule_rows import create_rule
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from failsoft.events import PostedEvent
from tests.diagnostics.builders import degraded

MINUTE = timedelta(minutes=1)


def count_degraded(project_id: int) -> AlertRule:
    """Make a rule that fires at three degraded runs of a model within an hour."""
    given = {"name": "Repeated degradation", "signal": "degraded_count", "detector": "count"}
    return create_rule(project_id, given, None)


def degrade(project: Project, at: datetime, times: int, **changes: object) -> None:
    """Record degraded runs."""
    runs = [
        degraded(
            occurred_at=(at + timedelta(seconds=number)).isoformat(),
            correlation_id=f"run-{number}-{at.timestamp()}",
            **changes,
        )
        for number in range(times)
    ]
    record(project.pk, [PostedEvent.model_validate(one) for one in runs])
    fold()


def count_calls(
    project: Project,
    since: datetime,
    shares: Iterable[float],
    calls: int,
    model: str,
    width: timedelta = MINUTE,
) -> None:
    """Put calls of one model into the stretches from `since` on, by their failing share."""
    chance = Random(model)
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "COPY diagnostics_rollup_delta (project_id, minute, node, provider, model,"
            " attempts, invalid, not_json, succeeded) FROM STDIN"
        ) as copy,
    ):
        for number, share in enumerate(shares):
            bad = sum(chance.random() < share for _ in range(calls))
            at = since + number * width
            counts = (calls, bad, bad, calls - bad)
            copy.write_row((project.pk, at, "next_step", "acme", model, *counts))
    while fold():
        pass
