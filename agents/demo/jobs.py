"""Load or remove the demo data in a worker, with a row and an audit entry."""

from dataclasses import asdict
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction

from agents.demo import loading
from agents.jobs import DemoOrder, finish_job, submit_job
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.clock import DatabaseNow

TASK = "agents.tasks.see_to_demo"
# The order of a worker that died stays `running`: after this time it counts as failed.
LOST = timedelta(minutes=15)
Status = DemoOrder.Status


def order_demo(project: Project, by: User, verb: str) -> DemoOrder:
    """Enqueue loading or removing the demo data; return the running order if there is one."""
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        at_work = DemoOrder.objects.filter(project=project, status=Status.RUNNING)
        lost = at_work.filter(at__lt=clock.now() - LOST)
        lost.update(status=Status.FAILED, finished_at=DatabaseNow())
        if running := at_work.first():
            return running
        job = DemoOrder(project=project, verb=DemoOrder.Verb(verb))
        submit_job(job, by, TASK, f"demo.{verb}_ordered", project.slug)
    return job


def last_order(project: Project) -> DemoOrder | None:
    """Return the newest order, failed if its worker died: the next order stores that."""
    orders = DemoOrder.objects.filter(project=project).select_related("by")
    order = orders.order_by("-at", "-pk").first()
    if order and order.status == Status.RUNNING and order.at < clock.now() - LOST:
        order.status = Status.FAILED
    return order


def carry_out(order_id: int) -> None:
    """Load or remove as ordered; safe to repeat after an interruption."""
    orders = DemoOrder.objects.select_related("project")
    job = orders.filter(pk=order_id, status=Status.RUNNING).first()
    if job is None:
        return
    status, counts = Status.FAILED, loading.DemoCounts(0, 0)
    try:
        is_load = job.verb == DemoOrder.Verb.LOAD
        counts = loading.load(job.project, clock.now()) if is_load else loading.remove(job.project)
        status = Status.DONE
    finally:
        action = f"demo.{job.verb}_{status}"
        finish_job(job, status, action, job.project.slug, **asdict(counts))
