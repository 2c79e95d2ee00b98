"""Settling steps of a distributed run, always under the lock of the run."""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NoReturn
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet
from pydantic import JsonValue
from pydantic_core import to_json

from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.outbound.credentials import WorkingKeyError
from diagnostics.store.leases import MAX_STARTS, silent
from diagnostics.store.outbox import enqueue_many
from diagnostics.store.sql import execute
from failsoft.json_values import JSON
from failsoft.plans.contract import StepResult
from failsoft.plans.execution import CallContext, Executed, Seams, run_step, settle_step
from failsoft.plans.resolution import ResolvedPlan
from failsoft.plans.summary import Progress
from plans.models.run import Run, RunStep
from plans.runs import records, working_store
from plans.runs.claims import lease
from plans.runs.loading import forget, plan_of
from plans.runs.step_calls import admit_unknown, interruption_fault, may_repeat
from plans.runs.submission import OUTPUT_PREFIX, QUEUE, STEPS_TASK

logger = structlog.get_logger(__name__)

# Up to this many ready steps get a message each; beyond that, steps share messages.
_SINGLE_MESSAGES = 64
_MOST_STEPS_OF_MESSAGE = 16
_WAIT_OF_STEP = timedelta(milliseconds=100)
_Done = Mapping[int, tuple[Executed, int | None]]


def silent_steps() -> Q:
    """Return the filter for ready steps whose worker died or whose message was lost."""
    return silent(Q(state=RunStep.State.PENDING), Q(state=RunStep.State.STARTED), QUEUE)


class Settlement:
    """One transaction on a locked run: stores results, enqueues ready steps.

    `stopped` is the reason why no further tool is called; by default it is read from the
    run.
    """

    def __init__(self, run: Run, plan: ResolvedPlan, stopped: str | None = None) -> None:
        self.run = run
        self.plan = plan
        self.stopped = stopped or read_stop(run)
        self.progress = Progress()
        self.seams = Seams(_never_called, lambda: self.stopped, strict_degraded=run.strict_degraded)

    def settle(self, done: _Done) -> None:
        accepted = self._store(
            {index: (step.result, token) for index, (step, token) in done.items()}
        )
        late = done.keys() - accepted
        if late:
            logger.warning("steps_come_too_late", run_id=str(self.run.pk), count=len(late))
        if not accepted:
            return
        outputs = {
            f"{OUTPUT_PREFIX}{index}": done[index][0].raw_output
            for index in accepted
            if index in self.plan.referenced and done[index][0].result.ok
        }
        working_store.put_all(self.run, outputs)
        dependents = self.plan.dependents
        released = Counter(other for index in accepted for other in dependents[index])
        self.advance(self._release(released))

    def settle_ready(self) -> None:
        """Settle ready steps that have not begun and need no call."""
        ready = self._open().filter(state=RunStep.State.PENDING, waits_for=0)
        self.advance(list(ready.values_list("position", flat=True)))

    def give_back(self, tokens: Mapping[int, int]) -> None:
        params = {"positions": list(tokens), "tokens": list(tokens.values())}
        rows = execute("give_back_steps", {"run": self.run.pk, **params})
        self._enqueue([position for (position,) in rows], alone=True)

    def settle_silent(self, positions: Sequence[int]) -> None:
        """Requeue or settle ready steps whose message was lost or whose worker died."""
        rows = self._open().filter(silent_steps(), position__in=positions, waits_for=0)
        silent_rows = list(rows.values_list("position", "fencing_token", "starts", "state"))
        done: dict[int, tuple[Executed, int | None]] = {}
        requeued: list[int] = []
        for position, token, starts, state in silent_rows:
            step = self.plan.steps[position]
            if state == RunStep.State.STARTED and starts >= MAX_STARTS:
                done[position] = interruption_fault(step, starts), token
            elif state == RunStep.State.STARTED and not may_repeat(step):
                done[position] = admit_unknown(step), token
            elif self.stopped is None:
                requeued.append(position)
            elif state == RunStep.State.STARTED:
                executed = run_step(self.plan, position, self.progress, {}, self.seams)
                done[position] = executed, token
        # A late result of the first worker is refused from here on; the starts stay counted.
        self._open().filter(position__in=requeued).update(state=RunStep.State.PENDING)
        self._enqueue(requeued, alone=True)
        if done:
            self.settle(done)
        elif len(requeued) < len(silent_rows):
            self.settle_ready()

    def advance(self, ready: Iterable[int]) -> None:
        """Enqueue steps that can be called, settle those that cannot; end the run if it is over."""
        pending = deque(sorted(ready))
        self._read_faults({d for i in pending for d in self.plan.steps[i].dependencies})
        calls: list[int] = []
        settled: dict[int, StepResult] = {}
        awaited: dict[int, int] = {}
        released: Counter[int] = Counter()
        while pending:
            index = pending.popleft()
            result = settle_step(self.plan, index, self.progress, self.seams)
            if result is None:
                calls.append(index)
                continue
            if not settled:
                waiting = self._open().filter(waits_for__gt=0)
                awaited = dict(waiting.values_list("position", "waits_for"))
                # From here on any step may become ready.
                self._read_faults(range(len(self.plan.steps)))
            settled[index] = result
            self.progress.record(self.plan, index, result)
            for dependent in self.plan.dependents[index]:
                released[dependent] += 1
                if awaited.get(dependent) == released[dependent]:
                    pending.append(dependent)
        self._store({index: (result, None) for index, result in settled.items()})
        self._release(released)
        self._enqueue(calls)
        if self.run.open_steps > 0 or self._open().exists():
            Run.objects.filter(pk=self.run.pk).update(open_steps=self.run.open_steps)
            return
        columns = records.end_columns(
            self.plan, records.progress_of(self.plan, records.final_results(self.run))
        )
        Run.objects.filter(pk=self.run.pk).update(open_steps=0, **columns)
        records.settle_end(self.run)
        forget(self.run.pk)
        records.report_end(self.run, columns)

    def _open(self) -> QuerySet[RunStep]:
        return self.run.steps.exclude(state=RunStep.State.FINAL)

    def _read_faults(self, positions: Collection[int]) -> None:
        if not positions:
            return
        not_ok = Q(ok=False) | Q(reason__isnull=False)
        steps = self.run.steps.filter(not_ok, state=RunStep.State.FINAL)
        roots = self._note(steps.filter(position__in=list(positions)))
        self._note(steps.filter(position__in=roots - self.progress.results.keys()))

    def _note(self, steps: QuerySet[RunStep]) -> set[int]:
        for step in steps:
            self.progress.results[step.position] = records.read_result(step)
            if step.root_position is not None:
                self.progress.roots[step.position] = step.root_position
        return set(self.progress.roots.values())

    def _store(self, results: Mapping[int, tuple[StepResult, int | None]]) -> set[int]:
        """Write results; return the positions whose token was still valid."""
        if not results:
            return set()
        rows = [
            {
                "position": index,
                "token": token,
                "ok": result.ok,
                "skipped": result.skipped,
                "reason": result.reason,
                "error": result.error,
                "output": result.output,
                "root": None if result.ok else self.progress.roots.get(index, index),
            }
            for index, (result, token) in results.items()
        ]
        stored = execute("settle_steps", {"run": self.run.pk, "rows": to_json(rows).decode()})
        self.run.open_steps -= len(stored)
        return {position for (position,) in stored}

    def _release(self, released: Counter[int]) -> list[int]:
        if not released:
            return []
        # In order, so that two transactions never wait for each other's rows.
        positions = sorted(released)
        results = [released[position] for position in positions]
        params = {"run": self.run.pk, "positions": positions, "results": results}
        rows = execute("release_dependents", params)
        return [position for position, open_count in rows if open_count == 0]

    def _enqueue(self, positions: list[int], *, alone: bool = False) -> None:
        if not positions:
            return
        until = lease() + _WAIT_OF_STEP * len(positions)
        rows = self.run.steps.filter(position__in=positions)
        rows.update(lease_until=DatabaseNow() + until)
        size = 1 if alone else min(_MOST_STEPS_OF_MESSAGE, -(-len(positions) // _SINGLE_MESSAGES))
        # Only steps that may be repeated share a message: it may be lost in between.
        steps = self.plan.steps
        shared = [index for index in positions if size > 1 and may_repeat(steps[index])]
        single = [[index] for index in positions if index not in set(shared)]
        batches = [shared[start : start + size] for start in range(0, len(shared), size)]
        messages: list[dict[str, JSON]] = [
            {"run_id": str(self.run.pk), "positions": list(batch)} for batch in [*single, *batches]
        ]
        enqueue_many(STEPS_TASK, messages, QUEUE, self.run.project_id)


@contextmanager
def settling(run_id: UUID, plan: ResolvedPlan | None = None) -> Iterator[Settlement | None]:
    """Lock a run for a settlement in one transaction; yield None when it is not running.

    A run whose plan cannot be read is settled without calls.
    """
    with transaction.atomic():
        # Only a running distributed run is locked.
        running = Run.objects.filter(pk=run_id, state=Run.State.RUNNING)
        distributed = running.filter(runner=Run.Runner.DISTRIBUTED, lease_until=None)
        run = distributed.select_for_update(no_key=True).first()
        stopped = None
        if run is not None and plan is None:
            try:
                plan = plan_of(run)
            except working_store.UNREADABLE as error:
                # Another worker may have the key, unless nothing is called any more.
                if isinstance(error, WorkingKeyError) and read_stop(run) is None:
                    raise
                plan, stopped = plan_of(run, run.payload), "payload_lost"
        yield Settlement(run, plan, stopped) if run and plan else None


def read_stop(run: Run) -> str | None:
    """Return the reason why no further tool of a run may be called, if any."""
    if run.cancel_requested_at is not None:
        return "cancelled"
    deadline: datetime | None = run.deadline_at
    return "deadline_reached" if deadline and deadline <= clock.now() else None


def _never_called(_name: str, _args: dict[str, JsonValue], _context: CallContext) -> NoReturn:
    raise AssertionError("a step is settled without a call")
