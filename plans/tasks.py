"""What workers do for plans; each task only names the work, rows decide it."""

from uuid import UUID

from celery import shared_task

from plans.runs import recovery, running, working_store
from plans.tools.mcp import refresh


@shared_task(name="plans.tasks.execute_run")
def execute_run(run_id: str) -> None:
    """Execute a run, or what is left of it."""
    running.execute_run(UUID(run_id))


@shared_task(name="plans.tasks.execute_steps")
def execute_steps(run_id: str, positions: list[int]) -> None:
    """Execute ready steps of a distributed run."""
    running.execute_steps(UUID(run_id), positions)


@shared_task(name="plans.tasks.reconcile_runs")
def reconcile_runs() -> None:
    """Take up runs that went silent."""
    recovery.reconcile_runs()


@shared_task(name="plans.tasks.purge_working_store")
def purge_working_store() -> None:
    """Delete raw values whose time is over."""
    working_store.purge_due()


@shared_task(name="plans.tasks.request_discovery")
def request_discovery() -> None:
    """Have every MCP server asked again that was not asked lately."""
    refresh.request_discovery()


@shared_task(name="plans.tasks.discover_tools")
def discover_tools(server: str) -> None:
    """Ask an MCP server what it offers."""
    refresh.discover_tools(server)
