"""Stored runs as result rows of the contract, their validation, and the end of a run."""

from collections.abc import Mapping
from typing import Any

import structlog

from diagnostics.clock import DatabaseNow
from diagnostics.store.outbox import enqueue
from failsoft.plans.contract import Meta, Stats, StepResult
from failsoft.plans.execution import collect_rows
from failsoft.plans.resolution import ResolvedPlan
from failsoft.plans.results import validate_results
from failsoft.plans.summary import Progress, summarise
from failsoft.plans.violations import Violation
from plans.models.run import Run, RunStep
from plans.runs import working_store


def results_of(run: Run) -> list[dict[str, Any]]:
    """Return the rows of a run in payload order; `__meta__` last once it has ended."""
    rows = [result.as_row() for _, result in sorted(final_results(run).items())]
    return rows if run.meta is None else [*rows, _in_order(run.meta)]


def results_document(run: Run) -> dict[str, Any]:
    return {"contract_version": run.contract_version, "results": results_of(run)}


def check_results(run: Run) -> list[Violation]:
    return validate_results(results_of(run))


def final_results(run: Run) -> dict[int, StepResult]:
    final = run.steps.filter(state=RunStep.State.FINAL)
    return {step.position: read_result(step) for step in final}


def progress_of(plan: ResolvedPlan, results: Mapping[int, StepResult]) -> Progress:
    progress = Progress()
    for index in plan.order if results else ():
        if index in results:
            progress.record(plan, index, results[index])
    return progress


def read_result(step: RunStep) -> StepResult:
    """Return the result of a final row as stored, valid or not."""
    return StepResult(
        step_id=step.step_id,
        tool=step.tool,
        ok=bool(step.ok),
        skipped=bool(step.skipped),
        reason=step.reason,
        error=step.error,
        output=step.output,
    )


def _in_order(meta: dict[str, Any]) -> dict[str, Any]:
    """Return the summary with its keys in the contract's order, which jsonb forgets."""
    ordered = {key: meta[key] for key in Meta.model_fields if key in meta}
    if isinstance(meta.get("stats"), dict):
        counts = meta["stats"]
        in_order = {key: counts[key] for key in Stats.model_fields if key in counts}
        ordered["stats"] = in_order | counts
    return ordered | {key: meta[key] for key in meta if key not in ordered}


logger = structlog.get_logger(__name__)

# The tasks of agents that handle the end of a plan run on the planning queue.
_ON_END_QUEUE = "plan"
POISON = "poison"


def end_columns(plan: ResolvedPlan, progress: Progress) -> dict[str, Any]:
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
    if columns["contract_violations"]:
        logger.error(
            "run_breaks_contract", run_id=str(run.id), violations=columns["contract_violations"]
        )
    if columns["state"] == Run.State.POISON:
        logger.error("run_poisoned", run_id=str(run.id))
