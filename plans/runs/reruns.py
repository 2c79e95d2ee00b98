"""Running a plan again: as a new run, from its beginning or from one of its steps."""

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

    Kept is what a step before it did, ok or not, if everything it waited for is kept
    too; what was skipped is looked at anew. Nothing that is kept is called. Raises
    RunRefusedError: `run_not_found`, `run_not_ended`, `step_not_found`,
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


def _find_kept(run: Run, plan: ResolvedPlan, before: int) -> dict[int, RunStep]:
    called = {
        step.position: step
        for step in run.steps.filter(state=RunStep.State.FINAL, position__lt=before)
        if not step.skipped
    }
    kept: dict[int, RunStep] = {}
    for index in plan.order:
        dependencies = plan.steps[index].dependencies
        if index in called and all(other in kept for other in dependencies):
            kept[index] = _copy(called[index])
    return kept


def _copy(step: RunStep) -> RunStep:
    step.pk = None
    step._state.adding = True
    step.fencing_token = 0
    return step


def _read_outputs(run: Run, plan: ResolvedPlan, kept: dict[int, RunStep]) -> dict[str, object]:
    """Return the raw outputs that steps to be run refer to."""
    wanted = {
        f"{OUTPUT_PREFIX}{other}"
        for step in plan.steps
        if step.index not in kept and step.has_dollar
        for other in step.dependencies
        if other in kept and kept[other].ok and other in plan.referenced
    }
    found = working_store.get_named(run, wanted)
    if wanted - found.keys():
        raise RunRefusedError(
            "values_deleted",
            "Outputs that later steps refer to have been deleted; run it from the start.",
        )
    return found
