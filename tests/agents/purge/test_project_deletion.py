"""A project is closed at once and deleted by a worker: everything but its audit entries."""

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection

from agents.demo.loading import load
from agents.goals.models import Goal
from agents.jobs import QUEUE
from agents.purge.purging import StillAtWorkError, carry_out, order_deletion, reconcile_purges
from diagnostics import clock, purge
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.audit_log import verify_chains
from diagnostics.accounts.authentication import KEEP_SECONDS
from diagnostics.accounts.models import AuditEntry, Membership, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.recording import record
from diagnostics.store.leases import note_mark
from diagnostics.store.models import Event, OutboxMessage
from tests.agents.conftest import let_time_pass
from tests.console import make_goal
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db

TASK = "agents.tasks.purge_ordered"
TABLES = """
SELECT c.table_name FROM information_schema.columns c
JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.column_name = 'project_id' AND c.table_schema = 'public' AND t.table_type = 'BASE TABLE'
"""


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def project(ada: User) -> Project:
    project = Project.objects.create(slug="one", name="One")
    Membership.objects.create(project=project, user=ada, role=Membership.Role.ADMIN)
    return project


def tables_with_rows_of(project_id: int) -> dict[str, int]:
    counts = {}
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        for (table,) in cursor.fetchall():
            query = f"SELECT count(*) FROM {table} WHERE project_id = %s"  # noqa: S608 - a catalogue's
            cursor.execute(query, [project_id])
            if count := cursor.fetchone()[0]:
                counts[table] = count
    return counts


@pytest.mark.slow
def test_nothing_of_a_deleted_project_is_left_but_its_audit_entries(
    project: Project, ada: User
) -> None:
    load(project, clock.now(), volume=0.02)
    other = Project.objects.create(slug="two", name="Two")
    record(other.pk, [make_event()])
    number = project.pk
    assert len(tables_with_rows_of(number)) > 20
    order = order_deletion(project, ada)
    carry_out(order.pk)
    assert tables_with_rows_of(number) == {}
    assert not Project.objects.filter(pk=number).exists()
    assert Event.objects.get().project_id == other.pk
    assert AuditEntry.objects.filter(chain=number, action="project.deletion_ordered").exists()
    ended = AuditEntry.objects.get(chain=0, action="project.deleted")
    assert ended.target == "one"
    assert all(hasattr(head, "hash") for head in verify_chains())
    carry_out(order.pk)


def test_a_project_that_will_be_deleted_is_closed_at_once(project: Project, ada: User) -> None:
    key = issue_key(project, "agent", [Scope.INGEST]).row
    order = order_deletion(project, ada)
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert not project.memberships.exists()
    message = OutboxMessage.objects.get(task=TASK)
    assert message.kwargs == {"order_id": order.pk}


def test_a_deletion_that_was_broken_off_is_taken_up_again(
    project: Project, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fall_over(*_: object) -> None:
        raise SoftTimeLimitExceeded

    order = order_deletion(project, ada)
    with monkeypatch.context() as patched:
        patched.setattr(purge, "purge_project", fall_over)
        with pytest.raises(SoftTimeLimitExceeded):
            carry_out(order.pk)
    OutboxMessage.objects.all().delete()
    take_up_after(settings.FAILSOFT_TASK_HARD_LIMIT_SECONDS + 1)
    carry_out(**OutboxMessage.objects.get(task=TASK).kwargs)
    assert not Project.objects.filter(pk=project.pk).exists()


def test_a_deletion_whose_message_the_broker_lost_is_taken_up(project: Project, ada: User) -> None:
    order_deletion(project, ada)
    OutboxMessage.objects.all().delete()
    note_mark(QUEUE, clock.now())
    assert reconcile_purges() == 0
    take_up_after(KEEP_SECONDS + 62)
    assert reconcile_purges() == 0
    carry_out(**OutboxMessage.objects.get(task=TASK).kwargs)
    assert not Project.objects.filter(pk=project.pk).exists()


def take_up_after(seconds: float) -> None:
    let_time_pass(seconds)
    note_mark(QUEUE, clock.now())
    assert reconcile_purges() == 1


def test_a_project_with_a_goal_at_work_stays_open(project: Project, ada: User) -> None:
    make_goal(project, "run-1")
    with pytest.raises(StillAtWorkError):
        order_deletion(project, ada)
    assert project.memberships.exists()


def test_a_goal_that_came_in_between_and_asks_is_cancelled(project: Project, ada: User) -> None:
    order = order_deletion(project, ada)
    goal = make_goal(project, "run-1")
    Goal.objects.filter(pk=goal.pk).update(status=Goal.Status.WAITING_USER)
    carry_out(order.pk)
    goal.refresh_from_db()
    assert goal.status == Goal.Status.CANCELLED
    take_up_after(settings.FAILSOFT_TASK_HARD_LIMIT_SECONDS + 1)
    carry_out(order.pk)
    assert not Project.objects.filter(pk=project.pk).exists()


def test_a_goal_that_came_in_between_is_waited_for(project: Project, ada: User) -> None:
    order = order_deletion(project, ada)
    goal = make_goal(project, "run-1")
    carry_out(order.pk)
    assert Goal.objects.filter(pk=goal.pk).exists()
    Goal.objects.filter(pk=goal.pk).update(status=Goal.Status.COMPLETED, ended_at=clock.now())
    take_up_after(settings.FAILSOFT_TASK_HARD_LIMIT_SECONDS + 1)
    carry_out(order.pk)
    assert not Project.objects.filter(pk=project.pk).exists()
