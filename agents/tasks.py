"""Celery tasks; arguments are ids, and rows decide what is done."""

from uuid import UUID

from celery import shared_task

from agents.cycle import running
from agents.demo import loading
from agents.llm import model_test
from agents.purge import purging


@shared_task(name="agents.tasks.run_goal")
def run_goal(goal_id: str) -> None:
    running.run_goal(UUID(goal_id))


reconcile_goals = shared_task(name="agents.tasks.reconcile_goals")(running.reconcile_goals)
try_model = shared_task(name="agents.tasks.try_model")(model_test.try_model)
purge_ordered = shared_task(name="agents.tasks.purge_ordered")(purging.carry_out)
reconcile_purges = shared_task(name="agents.tasks.reconcile_purges")(purging.reconcile_purges)
see_to_demo = shared_task(name="agents.tasks.see_to_demo")(loading.carry_out)
