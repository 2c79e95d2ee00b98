"""The distributed runner: each ready step is a message to any worker.

1. A run begins under its claim: the rows get to know what they wait for, and the ready
   steps are enqueued. From then on each step has a lease and a token of its own.
2. A worker takes a step by a conditional update, calls the tool, and settles the result
   under the run's lock: what became ready is enqueued in the same transaction, what
   cannot be called gets its row at once.
3. Whoever settles the last step ends the run.

No chord, no result backend: a message is a hint, the rows are counted.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
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
# What a message leaves after this time goes to other workers.
_SLICE_SECONDS = 2.0


class HeldStep(NamedTuple):
    """A step that this worker has claimed."""

    position: int
    token: int
    starts: int
    call_group: int


def begin(claim: RunClaim, payload: object, *, give_up: str | None = None) -> None:
    """Let the steps of a claimed run go out to the workers.

    With a reason to `give_up` every step gets a row, and no tool is called.
    """
    run = claim.run
    plan = plan_of(run, payload)
    with transaction.atomic():
        settlement = Settlement(run, plan, stopped=give_up)
        final = final_results(run)
        awaited = count_awaited(plan, final)
        claim.release(open_steps=len(awaited))
        waiting = {"positions": list(awaited), "results": list(awaited.values())}
        execute("set_waiting", {"run": run.pk, **waiting})
        run.open_steps = len(awaited)
        settlement.advance(index for index, count in awaited.items() if count == 0)


def execute_steps(run: Run, positions: Sequence[int]) -> None:
    """Call the tools of ready steps; without positions, only look what is left to do."""
    try:
        plan = plan_of(run)
    except working_store.WorkingItemMissingError:
        _settle_ready(run)
        return
    held = _claim(run, positions)
    if held:
        _Message(run, plan, held).go_through()
    if len(held) < len(positions) or not positions:
        _settle_ready(run, plan)


def _settle_ready(run: Run, plan: ResolvedPlan | None = None) -> None:
    """Settle what is ready and must not be called, such as the rest of a cancelled run."""
    with settling(run.pk, plan) as settlement:
        if settlement is not None and settlement.stopped is not None:
            settlement.settle_ready()


def _claim(run: Run, positions: Sequence[int]) -> list[HeldStep]:
    if not positions:
        return []
    bounds = {"lease": lease(), "most": MAX_STARTS}
    rows = execute("claim_steps", {"run": run.pk, "positions": list(positions), **bounds})
    return sorted(HeldStep(*row) for row in rows)


class _Message:
    """The steps of one message, one after the other."""

    def __init__(self, run: Run, plan: ResolvedPlan, held: list[HeldStep]) -> None:
        self.run = run
        self.plan = plan
        self.left = {step.position: step for step in held}
        self.done: dict[int, tuple[Executed, int | None]] = {}
        self.is_cancelled = False

    def go_through(self) -> None:
        """Execute and settle the steps; hand on what takes too long for one message."""
        give_back_at = time.monotonic() + _SLICE_SECONDS
        settle_at = time.monotonic() + _SETTLE_SECONDS
        with self._kept_alive():
            outputs = self._read_outputs()
            for step in list(self.left.values()):
                self.done[step.position] = self._execute(step, outputs), step.token
                del self.left[step.position]
                if time.monotonic() >= settle_at:
                    self._settle()
                    settle_at = time.monotonic() + _SETTLE_SECONDS
                if self.left and (time.monotonic() > give_back_at or is_stopping()):
                    break
            self._settle()
            if self.left:
                self._give_back()

    def _give_back(self) -> None:
        """Let other workers take what was claimed and not begun."""
        with settling(self.run.pk, self.plan) as settlement:
            if settlement is not None:
                settlement.give_back({step.position: step.token for step in self.left.values()})

    def _settle(self) -> None:
        """Store the results there are."""
        if not self.done:
            return
        done, self.done = self.done, {}
        with settling(self.run.pk, self.plan) as settlement:
            if settlement is None:
                logger.warning("steps_come_too_late", run_id=str(self.run.pk))
            else:
                settlement.settle(done)

    def _execute(self, held: HeldStep, outputs: dict[int, JsonValue]) -> Executed:
        step = self.plan.steps[held.position]
        if held.starts > 1 and not may_repeat(step):
            return admit_unknown(step)

        def context_of(plan: PlannedStep) -> CallContext:
            group = held.call_group
            return make_context(self.run, plan, held.starts, group, lambda: self.is_cancelled)

        seams = Seams(call_tool, redact=redact, redact_json=redact_json, context_of=context_of)
        # What it waits for is ok: otherwise it would have been settled, not enqueued.
        return run_step(self.plan, held.position, Progress(), outputs, seams)

    def _read_outputs(self) -> dict[int, JsonValue]:
        plan = self.plan
        wanted = {
            other
            for position in self.left
            if plan.steps[position].has_dollar
            for other in plan.steps[position].dependencies
            if other in plan.referenced
        }
        names = [f"{OUTPUT_PREFIX}{index}" for index in wanted]
        stored = working_store.get_named(self.run, names)
        return {int(name.removeprefix(OUTPUT_PREFIX)): output for name, output in stored.items()}

    def _kept_alive(self) -> AbstractContextManager[None]:
        """Hold the steps while they are called, and hear whether the run is cancelled."""
        if connection.in_atomic_block:
            return nullcontext()
        return kept_alive(min(2.0, lease().total_seconds() / 10), self._beat)

    def _beat(self) -> None:
        held = list(self.left.values())
        given = {
            "run": self.run.pk,
            "lease": lease(),
            "positions": [step.position for step in held],
            "tokens": [step.token for step in held],
        }
        rows = execute("beat_steps", given)
        if not rows or rows[0][0]:
            self.is_cancelled = True
