"""The demo data by one click: a row, a worker that loads or removes it, an audit entry."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction

from agents.demo import loading
from agents.demo.models import DemoOrder
from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Project
from diagnostics.clock import DatabaseNow
from diagnostics.store.outbox import enqueue

TASK = "agents.tasks.see_to_demo"
QUEUE = "fold"
# A worker that died leaves its order at work: after so long another may be given.
LOST = timedelta(minutes=15)
Status = DemoOrder.Status


def order_demo(project: Project, by: User, verb: str) -> DemoOrder:
    """Order the demo data to be loaded or removed; the order that is at work, if one is."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        lost = DemoOrder.objects.filter(
            project=project, status=Status.RUNNING, at__lt=clock.now() - LOST
        )
        lost.update(status=Status.FAILED, finished_at=DatabaseNow())
        at_work = DemoOrder.objects.filter(project=project, status=Status.RUNNING)
        if found := at_work.first():
            return found
        order = DemoOrder.objects.create(project=project, by=by, verb=DemoOrder.Verb(verb))
        note(project.pk, by, f"demo.{verb}_ordered", project.slug)
        enqueue(TASK, {"order_id": order.pk}, QUEUE, project.pk)
    return order


def last_order(project: Project) -> DemoOrder | None:
    """Return the newest order of a project."""
    orders = DemoOrder.objects.filter(project=project).select_related("by")
    return orders.order_by("-at", "-pk").first()


def has_demo(project: Project) -> bool:
    """Whether there is demo data in the project."""
    return loading.is_loaded(project)


def carry_out(order_id: int) -> None:
    """Load or remove as ordered; safe to repeat: what was interrupted is taken up again."""
    orders = DemoOrder.objects.select_related("project")
    order = orders.filter(pk=order_id, status=Status.RUNNING).first()
    if order is None:
        return
    try:
        if order.verb == DemoOrder.Verb.LOAD:
            counted = loading.load(order.project, clock.now())
        else:
            counted = loading.remove(order.project)
    except Exception:
        _finish(order, Status.FAILED, 0, 0)
        raise
    _finish(order, Status.DONE, counted.events, counted.goals)


def _finish(order: DemoOrder, status: str, events: int, goals: int) -> None:
    with transaction.atomic():
        at_work = DemoOrder.objects.filter(pk=order.pk, status=Status.RUNNING)
        changed = at_work.update(
            status=status, finished_at=DatabaseNow(), events=events, goals=goals
        )
        if changed:
            told = {"ordered_by": order.by_id, "events": events, "goals": goals}
            action = f"demo.{order.verb}_{status}"
            note(order.project_id, "a worker", action, order.project.slug, told)
