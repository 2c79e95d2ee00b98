"""The inline runner: one task executes a whole run and stores each step as it happens.

1. Claim the run; without a claim there is nothing to do.
2. For each step in order, unless its row is final: mark it started, run it, store it.
   Every write is fenced by the claim; the lease grows with each.
3. Store `__meta__`, check the stored results against the contract, end the run and
   enqueue what its submitter asked for, in one transaction.

A run longer than a slice is handed to the next message, so that no task outlives its
limits (C6). A run whose workers died three times without progress ends as poison (C4).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from pydantic import JsonValue

from diagnostics.clock import DatabaseNow
from diagnostics.outbox import enqueue
from diagnostics.redacting import redact, redact_json
from plans import working
from plans.claims import LEASE, Claim, LeaseLostError, claim_poisoned, claim_run
from plans.core.contract import StepResult
from plans.core.execution import Executed, Seams, run_step
from plans.core.resolution import ResolvedPlan, resolve_plan
from plans.core.summary import Progress, summarise
from plans.models import Run, RunStep
from plans.reading import check_results, read_result
from plans.submitting import enqueue_run, owner_of
from plans.tools.registry import call_tool, registered_tools

logger = structlog.get_logger(__name__)

_SLICE_SECONDS = 240
_TOOL_MARGIN = timedelta(seconds=30)
# Agents look at the end of a plan; they wait for it on the queue of planning.
_ON_END_QUEUE = "plan"
_OUTPUT_PREFIX = "output:"
_ENDED = Run.State.ENDED


def execute_run(run_id: UUID) -> None:
    """Execute a run to its end, or to the end of this slice.

    Safe to call any number of times, in any number of processes.
    """
    claim = claim_run(run_id)
    if claim is None:
        return
    with _noting_lost_lease(run_id):
        try:
            payload = working.get(claim.run.project_id, owner_of(run_id), "payload")
        except working.WorkingItemMissingError:
            _Execution(claim, claim.run.payload).give_up("payload_lost", _ENDED)
        else:
            _Execution(claim, payload).go_on()


def end_poisoned(run_id: UUID) -> None:
    """End a run that killed its workers: its steps get rows, no tool is called."""
    claim = claim_poisoned(run_id)
    if claim is None:
        return
    with _noting_lost_lease(run_id):
        # The shown payload has the same steps, and can be read without a key.
        _Execution(claim, claim.run.payload).give_up("poison", Run.State.POISON)


@contextmanager
def _noting_lost_lease(run_id: UUID) -> Iterator[None]:
    try:
        yield
    except LeaseLostError:
        logger.warning("run_lease_lost", run_id=str(run_id))


class _Execution:
    """One claim at work: the plan, what is known of it, and where results go."""

    def __init__(self, claim: Claim, payload: object) -> None:
        self.claim = claim
        self.run = claim.run
        self.owner = owner_of(self.run.id)
        self.plan: ResolvedPlan = resolve_plan(payload, redact)
        self.progress = Progress()
        self.outputs: dict[int, JsonValue] = {}
        self.interrupted: set[int] = set()
        self._read_rows()

    def go_on(self) -> None:
        """Run what has no final row yet; end the run, or queue it for another slice."""
        self._read_outputs()
        give_back_at = time.monotonic() + min(
            _SLICE_SECONDS, settings.TASK_SOFT_LIMIT_SECONDS / 2
        )
        for index in self._open_steps():
            if time.monotonic() > give_back_at:
                self._give_back()
                return
            self._store(index, self._run(index))
        self._end(_ENDED)

    def give_up(self, reason: str, state: Run.State) -> None:
        """Store a row for every step without calling a tool, and end the run."""
        for index in self._open_steps():
            self._store(index, self._skip_or_blame(index, reason))
        self._end(state)

    def _read_rows(self) -> None:
        steps = {step.position: step for step in self.run.steps.all()}
        for index in self.plan.order:
            step = steps[index]
            if step.state == RunStep.State.FINAL:
                self.progress.record(self.plan, index, read_result(step))
            elif step.state == RunStep.State.STARTED:
                self.interrupted.add(index)

    def _read_outputs(self) -> None:
        stored = working.get_all(self.run.project_id, self.owner, _OUTPUT_PREFIX)
        for name, output in stored.items():
            self.outputs[int(name.removeprefix(_OUTPUT_PREFIX))] = output

    def _open_steps(self) -> list[int]:
        return [
            index for index in self.plan.order if index not in self.progress.results
        ]

    def _run(self, index: int) -> Executed:
        if index in self.interrupted and not self._may_repeat(index):
            error = "The worker stopped during the call; nobody knows what it changed."
            return self._fail(index, "unknown_outcome", error)
        return self._step(index, lambda: self._begin(index))

    def _step(self, index: int, stop: Callable[[], str | None]) -> Executed:
        seams = Seams(call_tool, stop, redact, _redact_output)
        return run_step(self.plan, index, self.progress, self.outputs, seams)

    def _skip_or_blame(self, index: int, reason: str) -> Executed:
        if index in self.interrupted:
            error = f"The worker stopped during this step; {self.run.starts} starts."
            return self._fail(index, reason, error)
        return self._step(index, lambda: reason)

    def _fail(self, index: int, reason: str, error: str) -> Executed:
        step = self.plan.steps[index]
        return Executed(
            StepResult(
                step_id=step.step_id,
                tool=step.tool,
                ok=False,
                reason=reason,
                error=error,
            )
        )

    def _may_repeat(self, index: int) -> bool:
        """Whether a call that may have happened can be made again (C17)."""
        tool = registered_tools().get(self.plan.steps[index].call)
        return tool is None or tool.idempotent or not tool.side_effects

    def _begin(self, index: int) -> str | None:
        """Note that a tool is about to be called, unless there is a reason not to."""
        tool = registered_tools().get(self.plan.steps[index].call)
        seconds = (tool.timeout_seconds if tool else None) or 0
        with transaction.atomic():
            self.claim.renew(max(LEASE, timedelta(seconds=seconds) + _TOOL_MARGIN))
            stop = self.claim.read_stop()
            if stop is None:
                self._write(
                    index, state=RunStep.State.STARTED, started_at=DatabaseNow()
                )
        return stop

    def _store(self, index: int, executed: Executed) -> None:
        """Make a step's result final, and keep its output if others refer to it."""
        result = executed.result
        with transaction.atomic():
            # Progress: the count of starts begins anew with this one (C4).
            self.claim.renew(starts=min(self.run.starts, 1))
            if index in self.plan.referenced and result.ok:
                name = f"{_OUTPUT_PREFIX}{index}"
                working.put(self.run.project_id, self.owner, name, executed.raw_output)
            self._write(
                index,
                state=RunStep.State.FINAL,
                ok=result.ok,
                skipped=result.skipped,
                reason=result.reason,
                error=result.error,
                output=result.output if result.ok else None,
                ended_at=DatabaseNow(),
            )
        self.progress.record(self.plan, index, result)
        if index in self.plan.referenced:
            self.outputs[index] = executed.raw_output

    def _write(self, index: int, **columns: object) -> None:
        row = RunStep.objects.filter(run=self.run, position=index)
        row.update(fencing_token=self.claim.token, **columns)

    def _give_back(self) -> None:
        with transaction.atomic():
            self.claim.renew(state=Run.State.QUEUED, starts=0)
            enqueue_run(self.run)

    def _end(self, state: Run.State) -> None:
        meta = summarise(self.plan, self.progress)
        with transaction.atomic():
            self.run.meta = meta.as_row()
            violations = [v.as_dict() for v in check_results(self.run)]
            self.claim.release(
                state=state,
                task_status=meta.task_status,
                meta=self.run.meta,
                contract_violations=violations,
                ended_at=DatabaseNow(),
            )
            working.expire(self.run.project_id, self.owner)
            self._tell_submitter()
        self._report(state, violations)

    def _tell_submitter(self) -> None:
        if self.run.on_end_task:
            enqueue(
                self.run.on_end_task,
                self.run.on_end_kwargs,
                _ON_END_QUEUE,
                self.run.project_id,
            )

    def _report(self, state: Run.State, violations: list[dict[str, Any]]) -> None:
        if violations:
            logger.error(
                "run_breaks_contract", run_id=str(self.run.id), violations=violations
            )
        if state is Run.State.POISON:
            logger.error("run_poisoned", run_id=str(self.run.id))


def _redact_output(value: JsonValue) -> JsonValue:
    redacted: JsonValue = redact_json(value)
    return redacted
