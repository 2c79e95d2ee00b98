"""What workers do for goals; each task only names the work, rows decide it."""

from uuid import UUID

from celery import shared_task

from agents.cycle import recovery, running
from agents.demo import jobs
from agents.llm import model_test
from agents.purge import purging


@shared_task(name="agents.tasks.run_goal")
def run_goal(goal_id: str) -> None:
    """Move a goal as far as it goes now."""
    running.run_goal(UUID(goal_id))


@shared_task(name="agents.tasks.reconcile_goals")
def reconcile_goals() -> None:
    """Take up goals that went silent."""
    recovery.reconcile_goals()


@shared_task(name="agents.tasks.try_model")
def try_model(model_id: int) -> None:
    """Call a model once, as an administrator asked."""
    model_test.try_model(model_id)


@shared_task(name="agents.tasks.purge_ordered")
def purge_ordered(order_id: int) -> None:
    """Carry out a purge that an administrator ordered."""
    purging.carry_out(order_id)


@shared_task(name="agents.tasks.see_to_demo")
def see_to_demo(order_id: int) -> None:
    """Load or remove the demo data, as an administrator asked."""
    jobs.carry_out(order_id)
