"""Delete the data of a correlation id or a project, batch by batch.

Every batch is its own transaction: an interrupted purge is resumed by
repeating it. Deleted events are subtracted from rollups and groups too; the running
totals of /metrics, which identify nobody, stay.
"""

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

# All data of a project except events.
PROJECT_TABLES = (
    "diagnostics_event_payload",
    "diagnostics_eventidentity",
    "diagnostics_agentrun",
    "diagnostics_assessment",
    "diagnostics_unplacedcall",
    "diagnostics_agentspan",
    "diagnostics_rollup_delta",
    "diagnostics_rollup_minute",
    "diagnostics_rollup_hour",
    "diagnostics_rollup_day",
    "diagnostics_rollup_hour_by_version",
    "diagnostics_rollup_day_by_version",
    "diagnostics_rollup_total",
    "diagnostics_group_delta",
    "diagnostics_group_hour",
    "diagnostics_group_day",
    "diagnostics_outcome",
    "diagnostics_spancall",
    "diagnostics_spanverdict",
    "diagnostics_reject",
    "diagnostics_answerer",
    "diagnostics_keyminute",
    "diagnostics_alert_minute",
    "diagnostics_alertslot",
    # Deliveries refer to their report: they are deleted first.
    "diagnostics_reportdelivery",
    "diagnostics_report",
)
NAMED_ROWS = (
    "groupchange WHERE group_id IN ("
    " SELECT id FROM diagnostics_failuregroup WHERE project_id = %s)",
    *(
        f"{name} WHERE project_id = %s"
        for name in ("failuregroup", "seriesdetector", "series", "seriesname", "version")
    ),
)
MOST_ROWS = 20_000


def purge_correlation(project_id: int, correlation_id: str) -> int:
    """Delete the events and assessments of one correlation id; return the number of events.

    Their identities stay for 8 days: an event that is sent again is a duplicate and
    is not stored.
    """
    Assessment.objects.filter(project_id=project_id, correlation_id=correlation_id).delete()
    return _forget_all(project_id, OF_REFERENCE, correlation_id)


def purge_marked(project_id: int, mark: str) -> int:
    """Delete the events whose ids end in these hexadecimal digits, as if never sent."""
    return _forget_all(project_id, OF_MARK, mark, with_identities=True)


def purge_project(project: Project) -> int:
    """Delete all events, counts and groups of a project, but not its settings.

    Return the number of events.
    """
    events = _delete_all("diagnostics_event", project.pk)
    # Their notifications, and every evaluation of a series, are deleted with them.
    Incident.objects.filter(project=project).delete()
    AlertState.objects.filter(rule__project=project).delete()
    RuleDay.objects.filter(rule__project=project).delete()
    Deploy.objects.filter(project=project, kind__in=ObservedKind).delete()
    for table in PROJECT_TABLES:
        _delete_all(table, project.pk)
    for rows in NAMED_ROWS:
        change(f"DELETE FROM diagnostics_{rows}", [project.pk])  # noqa: S608 - our own
    return events


def _forget_all(
    project_id: int, condition: str, value: str, *, with_identities: bool = False
) -> int:
    # A failure is subtracted from its group, which must exist.
    fold_project(project_id)
    total = 0
    while True:
        with transaction.atomic():
            count = forget_batch(project_id, condition, value, with_identities=with_identities)
        if not count:
            break
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


def _delete_all(table: str, project_id: int) -> int:
    total = 0
    for leaf in leaves_of(table):
        while count := delete_batch(leaf, project_id):
            total += count
    return total
