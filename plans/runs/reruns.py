"""Reruns: a new run of the same plan, from the beginning or from one of its steps."""

from uuid import UUID

from django.db import transaction

from diagnostics.redaction.redactor import redact
from failsoft.plans.resolution import ResolvedPlan
from plans.models.run import Run, RunStep
from plans.runs import working_store
from plans.runs.loading import NAME_BYTES, ended_run, kept_payload, read_plan, read_rows
from plans.runs.submission import OUTPUT_PREFIX, RunRefusedError, store_run


def rerun(run_id: UUID, from_position: int | None = None, *, by: str = "") -> Run:
    """Queue a new run of the same plan; results before `from_position` are kept.

    The result of an earlier step is kept, ok or not, if the results of all its
    dependencies are kept too. Skipped steps are evaluated again. Kept steps are not called.
    Raises RunRefusedError: `run_not_found`, `run_not_ended`, `step_not_found`,
    `values_deleted`.
    """
    run = ended_run(run_id)
    payload = kept_payload(run)
    plan = read_plan(payload, read_rows(run))
    if not 0 <= (from_position or 0) < max(len(plan.steps), 1):
        raise RunRefusedError("step_not_found", "Step not found.")
    kept = _find_kept(run, plan, from_position or 0)
    with transaction.atomic():
        return store_run(
            run.project_id,
            payload,
            run.correlation_id,
            kept=kept,
            outputs=_read_outputs(run, plan, kept),
            cycle=run.cycle,
            runner=run.runner,
            strict_degraded=run.strict_degraded,
            rerun_of=run,
            rerun_from=from_position,
            requested_by=redact(by, NAME_BYTES),
        )


def _find_kept(run: Run, plan: ResolvedPlan, end: int) -> dict[int, RunStep]:
    called_steps = {
        step.position: step
        for step in run.steps.filter(state=RunStep.State.FINAL, position__lt=end)
        if not step.skipped
    }
    kept: dict[int, RunStep] = {}
    for index in plan.order:
        dependencies = plan.steps[index].dependencies
        if index in called_steps and all(other in kept for other in dependencies):
            kept[index] = _copy(called_steps[index])
    return kept


def _copy(step: RunStep) -> RunStep:
    step.pk = None
    step._state.adding = True
    step.fencing_token = 0
    return step


def _read_outputs(run: Run, plan: ResolvedPlan, kept: dict[int, RunStep]) -> dict[str, object]:
    """Return the raw outputs of kept steps that the steps to be run refer to."""
    names = {
        f"{OUTPUT_PREFIX}{other}"
        for step in plan.steps
        if step.index not in kept and step.has_dollar
        for other in step.dependencies
        if other in kept and kept[other].ok and other in plan.referenced
    }
    outputs = working_store.get_named(run, names)
    if names - outputs.keys():
        raise RunRefusedError(
            "values_deleted",
            "Outputs that later steps refer to have been deleted; run it from the start.",
        )
    return outputs
