"""What people do with a run that has ended: rerun it, or decide its steps of unknown outcome.

A call that may or may not have happened ends as `unknown_outcome`, a step that killed its
workers as `poison`. A person who has checked decides: it was done, it was not done, or run
it again. The run then continues with the steps that were skipped because of it.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact
from failsoft.plans.resolution import ResolvedPlan
from failsoft.plans.violations import quote
from plans.models.run import Run, RunStep
from plans.runs import working_store
from plans.runs.claims import lease
from plans.runs.loading import read_plan, read_rows
from plans.runs.records import POISON
from plans.runs.step_calls import UNKNOWN_OUTCOME
from plans.runs.submission import OUTPUT_PREFIX, RunRefusedError, enqueue_run, store_run

_ENDED = (Run.State.ENDED, Run.State.POISON)
NAME_BYTES = 200


def _ended_run(run_id: UUID, runs: QuerySet[Run]) -> Run:
    """Return a run that has ended.

    Raises RunRefusedError: `run_not_found`, `run_not_ended`.
    """
    run = runs.filter(pk=run_id).first()
    if run is None:
        raise RunRefusedError("run_not_found", "Run not found.")
    if run.state not in _ENDED:
        raise RunRefusedError("run_not_ended", "The run has not ended yet.")
    return run


def _kept_payload(run: Run) -> object:
    """Return the payload of a run that has ended; RunRefusedError: `values_deleted`."""
    try:
        payload: object = working_store.get(run, "payload")
    except working_store.UNREADABLE:
        text = "The arguments of the run, or their key, have been deleted; it cannot continue."
        raise RunRefusedError("values_deleted", text) from None
    return payload


def rerun(run_id: UUID, from_position: int | None = None, *, by: str = "") -> Run:
    """Queue a new run of the same plan; results before `from_position` are kept.

    The result of an earlier step is kept, ok or not, if the results of all its
    dependencies are kept too. Skipped steps are evaluated again. Kept steps are not called.
    Raises RunRefusedError: `run_not_found`, `run_not_ended`, `step_not_found`,
    `values_deleted`.
    """
    run = _ended_run(run_id, Run.objects.all())
    payload = _kept_payload(run)
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
            step = kept[index] = called_steps[index]
            # A row of the new run.
            step.pk = None
            step._state.adding = True
            step.fencing_token = 0
    return kept


def _read_outputs(run: Run, plan: ResolvedPlan, kept: dict[int, RunStep]) -> dict[str, object]:
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


Verdict = RunStep.Resolution
UNRESOLVED = (UNKNOWN_OUTCOME, POISON)
# The columns of a step that is run or settled again.
_RESET: dict[str, Any] = {
    "state": RunStep.State.PENDING,
    "ok": None,
    "skipped": None,
    "reason": None,
    "error": None,
    "output": None,
    "root_position": None,
    "lease_until": None,
    "starts": 0,
    "started_at": None,
    "ended_at": None,
}


def resolve_steps(
    run_id: UUID, positions: Sequence[int], verdict: Verdict, by: str, *, new_key: bool = False
) -> Run:
    """Settle steps by a person's decision, all or none, and resume their run.

    `verdict` is `done` (they count as ok), `not_done` (they have failed) or `resume` (they are
    run again, under the same idempotency key unless `new_key`). Raises
    RunRefusedError: `run_not_found`, `run_not_ended`, `step_not_found`,
    `step_decided`, `values_deleted`.
    """
    with transaction.atomic():
        run = _ended_run(run_id, Run.objects.select_for_update())
        _check_undecided(run, positions)
        plan = read_plan(_kept_payload(run), read_rows(run))
        for step in run.steps.filter(position__in=positions):
            _decide(run, step, verdict, redact(by, NAME_BYTES), new_key=new_key)
        blocked = _find_blocked(run, plan, positions)
        run.steps.filter(position__in=blocked).update(**_RESET)
        columns: dict[str, Any] = {
            "state": Run.State.QUEUED,
            "task_status": None,
            "meta": None,
            "contract_violations": [],
            "starts": 0,
            "ended_at": None,
            "lease_until": DatabaseNow() + lease(),
            # A person may decide after it.
            "deadline_at": None,
        }
        if verdict is Verdict.RESUME:
            columns["cancel_requested_at"] = None
        Run.objects.filter(pk=run.pk).update(**columns)
        working_store.keep(run)
        run.refresh_from_db()
        enqueue_run(run)
    return run


def _check_undecided(run: Run, positions: Sequence[int]) -> None:
    steps = {step.position: step for step in run.steps.filter(position__in=positions)}
    for position in positions:
        step = steps.get(position)
        if step is None:
            raise RunRefusedError("step_not_found", "Step not found.")
        if step.ok or step.reason not in UNRESOLVED:
            raise RunRefusedError(
                "step_decided", f"What became of step {quote(step.step_id)} is known."
            )


def _decide(run: Run, step: RunStep, verdict: Verdict, by: str, *, new_key: bool) -> None:
    columns: dict[str, Any] = {
        "resolution": verdict,
        "resolved_by": by,
        "resolved_at": DatabaseNow(),
    }
    if verdict is Verdict.RESUME:
        columns |= {**_RESET, "call_group": F("call_group") + int(new_key)}
    elif verdict is Verdict.DONE:
        columns |= {"ok": True, "skipped": False, "error": None, "root_position": None}
        columns["reason"] = f"resolved: done, as {quote(by)} has said"
        name = f"{OUTPUT_PREFIX}{step.position}"
        working_store.put(run, name, None)
    else:
        columns |= {"ok": False, "skipped": False, "root_position": step.position}
        columns["reason"] = Verdict.NOT_DONE.value
        columns["error"] = f"It was not done, as {quote(by)} has said."
    RunStep.objects.filter(pk=step.pk).update(**columns)


def _find_blocked(run: Run, plan: ResolvedPlan, positions: Iterable[int]) -> list[int]:
    """Return the steps that were skipped because of these, or as poison with them."""
    skipped = dict(run.steps.filter(skipped=True).values_list("position", "reason"))
    blocked = {position for position, reason in skipped.items() if reason == POISON}
    pending = [*positions, *blocked]
    while pending:
        for dependent in plan.dependents[pending.pop()]:
            if dependent in skipped and dependent not in blocked:
                blocked.add(dependent)
                pending.append(dependent)
    return sorted(blocked)
