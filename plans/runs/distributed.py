"""The distributed runner: each ready step is a message to any worker.

1. A run begins under its claim: the number of open dependencies is stored with each step,
   and the ready steps are enqueued. From then on each step has its own lease and token.
2. A worker takes a step by a conditional update, calls the tool, and settles the result
   under the run's lock. Steps that became ready are enqueued in the same transaction;
   steps that cannot be called get their result immediately.
3. The worker that settles the last step ends the run.

There is no chord and no result backend: a message is a hint, the rows decide.
"""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

import structlog
from django.db import connection, transaction
from pydantic import JsonValue

from diagnostics.redaction.redactor import redact, redact_json
from diagnostics.store.leases import MAX_STARTS, kept_alive
from diagnostics.store.sql import execute
from failsoft.plans.execution import CallContext, Executed, Seams, count_awaited, run_step
from failsoft.plans.resolution import PlannedStep, ResolvedPlan
from failsoft.plans.summary import Progress
from plans.models.run import Run
from plans.runs import working_store
from plans.runs.claims import RunClaim, lease
from plans.runs.loading import plan_of
from plans.runs.records import final_results
from plans.runs.step_calls import admit_unknown, make_context, may_repeat
from plans.runs.step_completion import Settlement, settling
from plans.runs.submission import OUTPUT_PREFIX
from plans.runs.worker_threads import is_stopping
from plans.tools.registry import call_tool

logger = structlog.get_logger(__name__)

# Several short steps of one message are settled together.
_SETTLE_SECONDS = 0.05
# Steps that a message has not begun after this time go back to the queue.
_SLICE_SECONDS = 2.0


class HeldStep(NamedTuple):
    position: int
    token: int
    starts: int
    call_group: int


def begin(claim: RunClaim, payload: object, *, give_up_reason: str | None = None) -> None:
    """Enqueue the ready steps of a claimed run.

    With a `give_up_reason` every step is settled, and no tool is called.
    """
    run = claim.run
    plan = plan_of(run, payload)
    with transaction.atomic():
        settlement = Settlement(run, plan, stopped=give_up_reason)
        final = final_results(run)
        awaited = count_awaited(plan, final)
        claim.release(open_steps=len(awaited))
        waiting = {"positions": list(awaited), "results": list(awaited.values())}
        execute("set_waiting", {"run": run.pk, **waiting})
        run.open_steps = len(awaited)
        settlement.advance(index for index, count in awaited.items() if count == 0)


def execute_steps(run: Run, positions: Sequence[int]) -> None:
    """Execute ready steps; without positions, only settle those that need no call."""
    try:
        plan = plan_of(run)
    except working_store.UNREADABLE:
        _settle_ready(run)
        return
    claims = {"positions": list(positions), "lease": lease(), "most": MAX_STARTS}
    rows = execute("claim_steps", {"run": run.pk, **claims}) if positions else []
    claimed = sorted(HeldStep(*row) for row in rows)
    if claimed:
        _Message(run, plan, claimed).execute_all()
    if len(claimed) < len(positions) or not positions:
        _settle_ready(run, plan)


def _settle_ready(run: Run, plan: ResolvedPlan | None = None) -> None:
    """Settle ready steps that must not be called, such as those of a cancelled run."""
    with settling(run.pk, plan) as settlement:
        if settlement is not None and settlement.stopped is not None:
            settlement.settle_ready()


class _Message:
    """The claimed steps of one message, executed one after the other."""

    def __init__(self, run: Run, plan: ResolvedPlan, claimed: list[HeldStep]) -> None:
        self.run = run
        self.plan = plan
        self.pending = {step.position: step for step in claimed}
        self.done: dict[int, tuple[Executed, int | None]] = {}
        self.is_cancelled = False

    def execute_all(self) -> None:
        """Execute and settle the steps; give back those that exceed the time of a message."""
        give_back_at = time.monotonic() + _SLICE_SECONDS
        settle_at = time.monotonic() + _SETTLE_SECONDS
        # Renews the leases of the steps, and watches for a cancellation of the run.
        beating = kept_alive(min(2.0, lease().total_seconds() / 10), self._beat)
        with nullcontext() if connection.in_atomic_block else beating:
            outputs = self._read_outputs()
            for step in list(self.pending.values()):
                self.done[step.position] = self._execute(step, outputs), step.token
                del self.pending[step.position]
                if time.monotonic() >= settle_at:
                    self._settle()
                    settle_at = time.monotonic() + _SETTLE_SECONDS
                if self.pending and (time.monotonic() > give_back_at or is_stopping()):
                    break
            self._settle()
            if self.pending:
                tokens = {step.position: step.token for step in self.pending.values()}
                with settling(self.run.pk, self.plan) as settlement:
                    if settlement is not None:
                        settlement.give_back(tokens)

    def _settle(self) -> None:
        if not self.done:
            return
        done, self.done = self.done, {}
        with settling(self.run.pk, self.plan) as settlement:
            if settlement is None:
                logger.warning("steps_come_too_late", run_id=str(self.run.pk))
            else:
                settlement.settle(done)

    def _execute(self, claimed: HeldStep, outputs: dict[int, JsonValue]) -> Executed:
        step = self.plan.steps[claimed.position]
        if claimed.starts > 1 and not may_repeat(step):
            return admit_unknown(step)

        def context_of(plan: PlannedStep) -> CallContext:
            group = claimed.call_group
            return make_context(self.run, plan, claimed.starts, group, lambda: self.is_cancelled)

        seams = Seams(call_tool, redact=redact, redact_json=redact_json, context_of=context_of)
        # All its dependencies are ok: otherwise it would have been settled, not enqueued.
        return run_step(self.plan, claimed.position, Progress(), outputs, seams)

    def _read_outputs(self) -> dict[int, JsonValue]:
        plan = self.plan
        referenced = {
            other
            for position in self.pending
            if plan.steps[position].has_dollar
            for other in plan.steps[position].dependencies
            if other in plan.referenced
        }
        names = [f"{OUTPUT_PREFIX}{index}" for index in referenced]
        stored = working_store.get_named(self.run, names)
        return {int(name.removeprefix(OUTPUT_PREFIX)): output for name, output in stored.items()}

    def _beat(self) -> None:
        pending = list(self.pending.values())
        params = {
            "run": self.run.pk,
            "lease": lease(),
            "positions": [step.position for step in pending],
            "tokens": [step.token for step in pending],
        }
        rows = execute("beat_steps", params)
        if not rows or rows[0][0]:
            self.is_cancelled = True
