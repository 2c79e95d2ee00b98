"""Celery tasks; arguments are ids, and rows decide what is done."""

from uuid import UUID

from celery import shared_task

from agents.cycle import running
from agents.demo import jobs
from agents.llm import model_test
from agents.purge import purging


@shared_task(name="agents.tasks.run_goal")
def run_goal(goal_id: str) -> None:
    running.run_goal(UUID(goal_id))


@shared_task(name="agents.tasks.reconcile_goals")
def reconcile_goals() -> None:
    running.reconcile_goals()


@shared_task(name="agents.tasks.try_model")
def try_model(model_id: int) -> None:
    model_test.try_model(model_id)


@shared_task(name="agents.tasks.purge_ordered")
def purge_ordered(order_id: int) -> None:
    purging.carry_out(order_id)


@shared_task(name="agents.tasks.reconcile_purges")
def reconcile_purges() -> None:
    purging.reconcile_purges()


@shared_task(name="agents.tasks.see_to_demo")
def see_to_demo(order_id: int) -> None:
    jobs.carry_out(order_id)
