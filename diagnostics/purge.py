"""Deleting what belongs to a correlation id or a project, batch by batch.

Every batch is a transaction of its own: a purge that was interrupted is taken up again by
asking for it again. What is deleted is taken out of rollups and groups too; the running
totals of /metrics, which name nobody, stay.
"""

from django.db import transaction

from diagnostics.accounts.models import Project
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.rule_models import AlertState, RuleDay
from diagnostics.ingest.deploy_items import ObservedKind
from diagnostics.ingest.models import Deploy
from diagnostics.store.aggregation import fold
from diagnostics.store.forgetting import OF_MARK, OF_REFERENCE, forget_batch
from diagnostics.store.retention import leaves_of
from diagnostics.store.run_models import Assessment
from diagnostics.store.sql import change

# Everything of a project that is no event.
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
    # Deliveries name their report: they go first.
    "diagnostics_reportdelivery",
    "diagnostics_report",
)
NAMED_ROWS = (
    "groupchange WHERE group_id IN ("
    " SELECT id FROM diagnostics_failuregroup WHERE project_id = %s)",
    *(f"{name} WHERE project_id = %s" for name in ("failuregroup", "series", "version")),
)
MOST_ROWS = 20_000


def purge_correlation(project_id: int, correlation_id: str) -> int:
    """Delete the events of one correlation id, and what was said of it; gives how many events.

    Their identities stay for 8 days: an event that is sent once more is a duplicate and
    does not come back.
    """
    Assessment.objects.filter(project_id=project_id, correlation_id=correlation_id).delete()
    return _forget_all(project_id, OF_REFERENCE, correlation_id)


def purge_marked(project_id: int, mark: str) -> int:
    """Delete the events whose ids end in these hexadecimal digits, as if never sent."""
    return _forget_all(project_id, OF_MARK, mark, with_identities=True)


def purge_project(project: Project) -> int:
    """Delete all events, counts and groups of a project; its settings stay.

    Gives how many events there were.
    """
    events = _delete_all("diagnostics_event", project.pk)
    # With them go what was told of them, and every look at a slice.
    Incident.objects.filter(project=project).delete()
    AlertState.objects.filter(rule__project=project).delete()
    RuleDay.objects.filter(rule__project=project).delete()
    Deploy.objects.filter(project=project, kind__in=ObservedKind).delete()
    for table in PROJECT_TABLES:
        _delete_all(table, project.pk)
    for rows in NAMED_ROWS:
        change(f"DELETE FROM diagnostics_{rows}", [project.pk])  # noqa: S608 - our own
    return events


def _forget_all(project_id: int, whose: str, told: str, *, with_identities: bool = False) -> int:
    # A failure is taken out of its group: the group must be there.
    fold(most_batches=1_000)
    total = 0
    while True:
        with transaction.atomic():
            count = forget_batch(project_id, whose, told, with_identities=with_identities)
        if not count:
            break
        total += count
    fold(most_batches=1_000)
    return total


def delete_batch(leaf: str, project_id: int) -> int:
    """Delete some of a project's rows of a table without partitions; gives how many.

    Rows are deleted where they lie: a list of places is not joined with the whole table.
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
