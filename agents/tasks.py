"""What workers do for goals; each task only names the work, rows decide it."""

from uuid import UUID

from celery import shared_task

from agents import reconciling, running


@shared_task(name="agents.tasks.run_goal")
def run_goal(goal_id: str) -> None:
    """Move a goal as far as it goes now."""
    running.run_goal(UUID(goal_id))


@shared_task(name="agents.tasks.reconcile_goals")
def reconcile_goals() -> None:
    """Take up goals that went silent."""
    reconciling.reconcile_goals()
