"""The end of a run, the same for every runner: summary, validation, notification."""

from collections.abc import Mapping
from typing import Any

import structlog

from diagnostics.clock import DatabaseNow
from diagnostics.store.outbox import enqueue
from failsoft.plans.contract import StepResult
from failsoft.plans.execution import collect_rows
from failsoft.plans.resolution import ResolvedPlan
from failsoft.plans.results import validate_results
from failsoft.plans.summary import Progress, summarise
from plans.models.run import Run
from plans.runs import working_store

logger = structlog.get_logger(__name__)

# The tasks of agents that handle the end of a plan run on the planning queue.
_ON_END_QUEUE = "plan"
POISON = "poison"


def end_columns(plan: ResolvedPlan, progress: Progress) -> dict[str, Any]:
    """Return the final columns of a run whose steps all have results."""
    meta = summarise(plan, progress)
    violations = validate_results([*collect_rows(plan, progress), meta.as_row()])
    return {
        "state": state_of(progress.results),
        "task_status": meta.task_status,
        "meta": meta.as_row(),
        "contract_violations": [violation.as_dict() for violation in violations],
        "ended_at": DatabaseNow(),
    }


def state_of(results: Mapping[int, StepResult]) -> Run.State:
    """Return the final state of a run: poison when a step killed its workers."""
    is_poisoned = any(result.reason == POISON for result in results.values())
    return Run.State.POISON if is_poisoned else Run.State.ENDED


def settle_end(run: Run) -> None:
    """Expire the raw values of a run and enqueue its `on_end_task`.

    Called in the transaction that ends the run.
    """
    working_store.expire(run)
    if run.on_end_task:
        enqueue(run.on_end_task, run.on_end_kwargs, _ON_END_QUEUE, run.project_id)


def report_end(run: Run, columns: Mapping[str, Any]) -> None:
    """Log contract violations and poisoned runs."""
    if columns["contract_violations"]:
        logger.error(
            "run_breaks_contract", run_id=str(run.id), violations=columns["contract_violations"]
        )
    if columns["state"] == Run.State.POISON:
        logger.error("run_poisoned", run_id=str(run.id))
