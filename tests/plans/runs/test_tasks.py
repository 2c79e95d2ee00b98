"""Tasks only name the work; rows decide it."""

from typing import Any

from diagnostics.accounts.models import Project
from plans import tasks
from plans.models.run import Run
from plans.runs.submission import submit_run


def test_the_task_executes_the_run_it_names(project: Project, chain: dict[str, Any]) -> None:
    run = submit_run(project.pk, chain, "c")
    tasks.execute_run(str(run.id))
    assert Run.objects.get().task_status == "COMPLETED"


def test_reconciling_nothing_is_no_error(project: Project) -> None:
    tasks.reconcile_runs()
    assert not Run.objects.exists()


def test_tasks_have_the_names_that_messages_use() -> None:
    assert tasks.execute_run.name == "plans.tasks.execute_run"
    assert tasks.reconcile_runs.name == "plans.tasks.reconcile_runs"
    assert tasks.purge_working_store.name == "plans.tasks.purge_working_store"
