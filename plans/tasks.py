"""Celery tasks of plans; a task only names the work, the rows decide whether it is due."""

from uuid import UUID

from celery import shared_task

from plans.checks.workspaces import remove_workspace, workspace_of
from plans.runs import running, working_store
from plans.tools.mcp import health


@shared_task(name="plans.tasks.execute_run")
def execute_run(run_id: str) -> None:
    running.execute_run(UUID(run_id))


@shared_task(name="plans.tasks.execute_steps")
def execute_steps(run_id: str, positions: list[int]) -> None:
    running.execute_steps(UUID(run_id), positions)


@shared_task(name="plans.tasks.purge_working_store")
def purge_working_store() -> None:
    """Delete expired raw values, and with a goal's its own workspace."""
    working_store.purge_due(
        lambda project, owner: remove_workspace(workspace_of(project, owner.partition(":")[2]))
    )


reconcile_runs = shared_task(name="plans.tasks.reconcile_runs")(running.reconcile_runs)
request_discovery = shared_task(name="plans.tasks.request_discovery")(health.request_discovery)
discover_tools = shared_task(name="plans.tasks.discover_tools")(health.discover_tools)
