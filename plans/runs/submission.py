"""Submitting runs: validation, then row and message in one transaction."""

import json
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact, redact_json
from diagnostics.redaction.rules import texts_of
from diagnostics.store.leases import UNFINISHED
from diagnostics.store.outbox import enqueue
from failsoft.identifiers import uuid7
from failsoft.json_values import JSON
from failsoft.plans.contract import MAX_PAYLOAD_BYTES
from failsoft.plans.outputs import make_json
from failsoft.plans.resolution import ResolvedPlan, resolve_plan
from failsoft.plans.validation import validate_payload
from failsoft.plans.violations import Violation
from plans.models.run import Run, RunStep
from plans.runs import working_store
from plans.runs.claims import lease, pins_of

EXECUTE_TASK = "plans.tasks.execute_run"
STEPS_TASK = "plans.tasks.execute_steps"
QUEUE = "steps"
# Raw outputs that other steps refer to are stored as `output:<index>`.
OUTPUT_PREFIX = "output:"
_NONE: Mapping[Any, Any] = {}


class InvalidPlanError(Exception):
    """The payload breaks the contract; nothing was stored or run."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__(
            "; ".join(f"{violation.path}: {violation.message}" for violation in violations[:3])
        )
        self.violations = violations


class RunRefusedError(Exception):
    """The request cannot be applied to the run; `code` is stable."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def submit_run(
    project_id: int,
    payload: object,
    correlation_id: str | None,
    *,
    cycle: int = 1,
    on_end_task: str | None = None,
    on_end_args: Mapping[str, JSON] | None = None,
    deadline_at: datetime | None = None,
    runner: str = Run.Runner.INLINE,
    strict_degraded: bool = False,
    force: bool = False,
) -> Run:
    """Validate a payload and queue its run; InvalidPlanError when it is refused.

    When the run has ended, `on_end_task` is enqueued with `on_end_args` through the outbox.
    The default of `correlation_id` is the id of the run. Steps not begun at `deadline_at`
    are skipped; the time in the queue is added to the deadline. `strict_degraded` skips
    steps that depend on a degraded output. `force` is for tests of the executor: an invalid
    payload of bounded size is run as far as possible.
    """
    violations = [] if force else validate_payload(payload)
    violations = violations or _check_size(payload)
    if violations:
        raise InvalidPlanError(violations)
    return store_run(
        project_id,
        payload,
        correlation_id,
        cycle=cycle,
        on_end_task=on_end_task or "",
        on_end_kwargs=dict(on_end_args or {}),
        deadline_at=deadline_at,
        runner=runner,
        strict_degraded=strict_degraded,
    )


def store_run(
    project_id: int,
    payload: object,
    correlation_id: str | None,
    *,
    kept: Mapping[int, RunStep] = _NONE,
    outputs: Mapping[str, object] = _NONE,
    **columns: Any,
) -> Run:
    """Queue the run of a validated payload.

    `kept` are the rows of steps that have a result already, by position; `outputs` are the
    raw outputs that other steps refer to.
    """
    with texts_of(project_id):
        plan = resolve_plan(payload, redact)
        shown_payload = redact_json(make_json(payload))
    now = clock.now()
    run_id = uuid7(now, secrets.token_bytes(10))
    with transaction.atomic():
        run = Run.objects.create(
            id=run_id,
            project_id=project_id,
            correlation_id=correlation_id or str(run_id),
            payload=shown_payload,
            # The message counts as lost after this.
            lease_until=now + lease(),
            created_at=now,
            **pins_of(plan),
            **columns,
        )
        steps = [kept.get(step.position, step) for step in _make_steps(run, plan)]
        for step in steps:
            step.run = run
        RunStep.objects.bulk_create(steps, batch_size=1_000)
        working_store.put_all(run, {"payload": payload, **outputs})
        enqueue_run(run)
    return run


def enqueue_run(run: Run) -> None:
    enqueue(EXECUTE_TASK, {"run_id": str(run.id)}, QUEUE, run.project_id)


def cancel_run(project_id: int, run_id: UUID) -> bool:
    """Request a stop of a run before its next tool call; False when it has already ended.

    Running tools can poll for it, and may end early.
    """
    unfinished = Run.objects.filter(project_id=project_id, pk=run_id, state__in=UNFINISHED)
    with transaction.atomic():
        if unfinished.update(cancel_requested_at=DatabaseNow()) != 1:
            return False
        run = unfinished.get()
        if run.runner == Run.Runner.DISTRIBUTED and run.state == Run.State.RUNNING:
            # Steps that have not begun are settled immediately.
            args: dict[str, JSON] = {"run_id": str(run.pk), "positions": []}
            enqueue(STEPS_TASK, args, QUEUE, project_id)
    return True


def _check_size(payload: Any) -> list[Violation]:  # noqa: ANN401 - validated JSON
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode("utf-8", "replace"))
    if size <= MAX_PAYLOAD_BYTES:
        return []
    message = f"expected at most {MAX_PAYLOAD_BYTES} bytes, got {size}"
    return [Violation("", "too_large", message)]


def _make_steps(run: Run, plan: ResolvedPlan) -> list[RunStep]:
    return [
        RunStep(
            project_id=run.project_id,
            run=run,
            position=step.index,
            step_id=step.step_id,
            title=step.title,
            tool=step.tool,
            dependencies=[plan.steps[other].step_id for other in step.dependencies],
        )
        for step in plan.steps
    ]
