"""Purges ordered on a page: carried out once, told in counts, noted."""

import json
from uuid import uuid4

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.contrib.auth.models import User

from agents.goals.models import Goal
from agents.jobs import QUEUE, PurgeOrder
from agents.purge.purging import carry_out, order_purge, reconcile_purges
from diagnostics import clock, purge
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.ingest.recording import record
from diagnostics.store.leases import note_mark
from diagnostics.store.models import OutboxMessage
from tests.agents.conftest import let_time_pass
from tests.console import make_goal
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="one", name="One")


def ended(project: Project, reference: str) -> Goal:
    goal = make_goal(project, reference)
    Goal.objects.filter(pk=goal.pk).update(status=Goal.Status.COMPLETED, ended_at=clock.now())
    return goal


def test_a_purge_goes_through_the_outbox_and_says_how_much(project: Project) -> None:
    by = User.objects.create_user("ada")
    ended(project, "run-1")
    kept = ended(project, "run-2")
    order = order_purge(project, by, "run-1")
    (message,) = OutboxMessage.objects.filter(task="agents.tasks.purge_ordered")
    assert message.kwargs == {"order_id": order.pk}
    carry_out(order.pk)
    carry_out(order.pk)
    order.refresh_from_db()
    assert (order.status, order.goals) == ("done", 1)
    assert list(Goal.objects.filter(project=project)) == [kept]
    told = list(AuditEntry.objects.values_list("action", flat=True))
    assert told == ["purge.ordered", "purge.done"]


def test_a_purge_that_was_broken_off_is_taken_up_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fall_over(*_: object) -> None:
        raise SoftTimeLimitExceeded

    ended(project, "run-1")
    order = order_purge(project, User.objects.create_user("ada"), "")
    with monkeypatch.context() as patched:
        patched.setattr(purge, "purge_project", fall_over)
        with pytest.raises(SoftTimeLimitExceeded):
            carry_out(order.pk)
    order.refresh_from_db()
    assert order.status == PurgeOrder.Status.RUNNING
    OutboxMessage.objects.all().delete()
    let_time_pass(settings.FAILSOFT_TASK_HARD_LIMIT_SECONDS + 1)
    note_mark(QUEUE, clock.now())
    assert reconcile_purges() == 1
    record(project.pk, [make_event()])
    carry_out(**OutboxMessage.objects.get().kwargs)
    order.refresh_from_db()
    assert order.status == PurgeOrder.Status.DONE
    assert (order.goals, order.events) == (1, 1), "with what went before it was broken off"
    details = json.loads(AuditEntry.objects.get(action="purge.done").details)
    assert (details["goals"], details["events"]) == (1, 1)


def test_a_purge_whose_message_the_broker_lost_is_taken_up(project: Project) -> None:
    order = order_purge(project, User.objects.create_user("ada"), "run-1")
    OutboxMessage.objects.all().delete()
    note_mark(QUEUE, clock.now())
    assert reconcile_purges() == 0
    let_time_pass(61)
    assert reconcile_purges() == 0, "its message may wait in the queue"
    note_mark(QUEUE, clock.now())
    assert reconcile_purges() == 1
    assert reconcile_purges() == 0
    carry_out(**OutboxMessage.objects.get().kwargs)
    order.refresh_from_db()
    assert order.status == PurgeOrder.Status.DONE
    let_time_pass(settings.FAILSOFT_TASK_HARD_LIMIT_SECONDS + 61)
    note_mark(QUEUE, clock.now())
    assert reconcile_purges() == 0


def test_a_goal_at_work_refuses_the_purge(project: Project) -> None:
    make_goal(project, "run-1")
    order = order_purge(project, User.objects.create_user("ada"), "")
    carry_out(order.pk)
    order.refresh_from_db()
    assert order.status == PurgeOrder.Status.REFUSED
    assert Goal.objects.filter(project=project).exists()


def test_an_unknown_order_is_nothing(project: Project) -> None:
    carry_out(uuid4().int % 1_000_000)
