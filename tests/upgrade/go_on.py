"""Print how many series of a database of 0.1.0 raise an alarm when they go on after the upgrade.

Runs by itself, on the database of DATABASE_URL: `python -m tests.upgrade.go_on KIND`. Every
series that ran in the last day answers twenty times a minute for ten minutes, all with events of
one kind: `unchecked` or `parse_invalid`. Beside the rules of the dump, each share that a rule
can watch has a limit of 50 %. Nothing of it is kept.
"""

import sys
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import django
from django.db import connection, transaction

MINUTE, MINUTES, CALLS = timedelta(minutes=1), 10, 20
SHARES = ("degraded_ratio", "first_pass_failure_ratio", "call_failure_ratio")
KINDS: dict[str, dict[str, Any]] = {
    "unchecked": {"kind": "succeeded", "unchecked": "no_schema"},
    "parse_invalid": {"kind": "parse_invalid", "parse_error_type": "not_json"},
}


def main() -> None:
    django.setup()
    # Models load only now.
    from diagnostics.alerting.evaluator import evaluate  # noqa: PLC0415
    from diagnostics.alerting.incident_models import IncidentSlice  # noqa: PLC0415
    from diagnostics.alerting.rule_models import AlertRule  # noqa: PLC0415
    from diagnostics.ingest.recording import record  # noqa: PLC0415
    from diagnostics.store.models import Event  # noqa: PLC0415
    from failsoft.events import PostedEvent  # noqa: PLC0415

    fields = KINDS[sys.argv[1]]
    with transaction.atomic():
        last = Event.objects.latest("occurred_at").occurred_at
        recent = Event.objects.filter(kind="succeeded", occurred_at__gt=last - timedelta(days=1))
        names = ("environment", "node", "provider", "model", "source")
        series = set(recent.values_list("project_id", *names))
        shift(last)
        AlertRule.objects.bulk_create(
            AlertRule(
                project_id=project_id,
                name=signal,
                signal=signal,
                detector="threshold",
                group_by=list(names[:-1]),
                parameters={"limit": 0.5},
            )
            for project_id in {project_id for project_id, *_ in series}
            for signal in SHARES
        )
        evaluate()
        before = IncidentSlice.objects.count()
        for minute in range(MINUTES):
            at = last + minute * MINUTE
            shift(at)
            for project_id, *values in series:
                told = event(dict(zip(names, values, strict=True)), at, fields)
                events = [
                    PostedEvent.model_validate(
                        {**told, "event_id": str(uuid4()), "correlation_id": str(uuid4())}
                    )
                    for _ in range(CALLS)
                ]
                record(project_id, events)
            evaluate()
        print(len(series), IncidentSlice.objects.count() - before)  # noqa: T201
        transaction.set_rollback(True)


def event(names: dict[str, Any], at: datetime, fields: dict[str, Any]) -> dict[str, Any]:
    told = {**names, **fields, "occurred_at": at.isoformat(), "cycle": 1, "attempt": 1}
    told["name"] = f"graph.{names['node']}.{told.pop('kind')}"
    return told


def shift(to: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('failsoft.clock_shift', (%s - now())::text, true)", [to])


if __name__ == "__main__":
    main()
