"""What workers do for plans; each task only names the work, rows decide it."""

from uuid import UUID

from celery import shared_task

from plans import reconciling, running, working


@shared_task(name="plans.tasks.execute_run")
def execute_run(run_id: str) -> None:
    """Execute a run, or what is left of it."""
    running.execute_run(UUID(run_id))


@shared_task(name="plans.tasks.reconcile_runs")
def reconcile_runs() -> None:
    """Take up runs that went silent."""
    reconciling.reconcile_runs()


@shared_task(name="plans.tasks.purge_working_store")
def purge_working_store() -> None:
    """Delete raw values whose time is over."""
    working.purge_due()
