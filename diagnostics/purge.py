"""Delete the data of a correlation id or a project, batch by batch.

Every batch is its own transaction: an interrupted purge is resumed by
repeating it. Deleted events are subtracted from rollups and groups too; the running
totals of /metrics, which identify nobody, stay.
"""

from collections.abc import Callable

from django.db import transaction

from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.rule_models import AlertState, RuleDay
from diagnostics.ingest.deploy_items import ObservedKind
from diagnostics.ingest.models import Deploy
from diagnostics.store.aggregation import fold_project
from diagnostics.store.retention import leaves_of
from diagnostics.store.run_models import Assessment
from diagnostics.store.runs import OF_MARK, OF_REFERENCE, forget_batch
from diagnostics.store.sql import change

# All data of a project except events. Deliveries refer to their report: they are deleted first.
PROJECT_TABLES = (
    "event_payload", "eventidentity", "agentrun", "assessment", "unplacedcall", "agentspan",
    "rollup_delta", "rollup_minute", "rollup_hour", "rollup_day", "rollup_hour_by_version",
    "rollup_day_by_version", "rollup_total", "group_delta", "group_hour", "group_day", "outcome",
    "spancall", "spanverdict", "reject", "answerer", "keyminute", "alert_minute", "alertslot",
    "reportdelivery", "report",
)  # fmt: skip
NAMED_ROWS = (
    "groupchange WHERE group_id IN ("
    " SELECT id FROM diagnostics_failuregroup WHERE project_id = %s)",
    *(
        f"{name} WHERE project_id = %s"
        for name in ("failuregroup", "seriesdetector", "series", "seriesname", "version")
    ),
)
MOST_ROWS = 20_000
# Takes the number of events that a batch has deleted, in the transaction of the batch.
NoteCount = Callable[[int], object]


def ignore(_count: int) -> None:
    """Note nothing."""


def purge_correlation(project_id: int, correlation_id: str, note: NoteCount = ignore) -> int:
    """Delete the events and assessments of one correlation id; return the number of events.

    Their identities stay for 8 days: an event that is sent again is a duplicate and
    is not stored.
    """
    Assessment.objects.filter(project_id=project_id, correlation_id=correlation_id).delete()
    return _forget_all(project_id, OF_REFERENCE, correlation_id, note)


def purge_marked(project_id: int, mark: str) -> int:
    """Delete the events whose ids end in these hexadecimal digits, as if never sent."""
    return _forget_all(project_id, OF_MARK, mark, ignore, with_identities=True)


def purge_project(project: Project, note: NoteCount = ignore) -> int:
    """Delete all events, counts and groups of a project, but not its settings.

    Return the number of events.
    """
    events = _delete_all("diagnostics_event", project.pk, note)
    # Their notifications, and every evaluation of a series, are deleted with them.
    Incident.objects.filter(project=project).delete()
    AlertState.objects.filter(rule__project=project).delete()
    RuleDay.objects.filter(rule__project=project).delete()
    Deploy.objects.filter(project=project, kind__in=ObservedKind).delete()
    for table in PROJECT_TABLES:
        _delete_all(f"diagnostics_{table}", project.pk)
    for rows in NAMED_ROWS:
        change(f"DELETE FROM diagnostics_{rows}", [project.pk])  # noqa: S608 - our own
    return events


def _forget_all(
    project_id: int, condition: str, value: str, note: NoteCount, *, with_identities: bool = False
) -> int:
    # A failure is subtracted from its group, which must exist.
    fold_project(project_id)
    total, count = 0, 1
    while count:
        with transaction.atomic():
            count = forget_batch(project_id, condition, value, with_identities=with_identities)
            note(count)
        total += count
    fold_project(project_id)
    return total


def delete_batch(leaf: str, project_id: int) -> int:
    """Delete a batch of a project's rows from an unpartitioned table; return how many.

    Rows are deleted by ctid, which needs no join with the whole table.
    """
    return change(
        f"DELETE FROM {leaf} WHERE ctid = ANY(ARRAY("  # noqa: S608 - our own name
        f" SELECT ctid FROM {leaf} WHERE project_id = %s LIMIT %s))",
        [project_id, MOST_ROWS],
    )


def _delete_all(table: str, project_id: int, note: NoteCount = ignore) -> int:
    total = 0
    for leaf in leaves_of(table):
        count = 1
        while count:
            with transaction.atomic():
                count = delete_batch(leaf, project_id)
                note(count)
            total += count
    return total
