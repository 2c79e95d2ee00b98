"""The inline runner: one task executes a run, its ready steps in threads.

1. The claim holds the run; the writer renews it while steps are running.
2. A step of a tool with side effects is stored as started before the call. Others are
   called immediately: calling them again after a crash has no further effect.
3. Results are queued for the writer, which commits them in groups.
4. With the last result the run ends, in one transaction.

After the death of a worker its run is executed carefully: one step at a time, each stored
as started before the call, so that a step that kills workers is started three times at
most. A run that is longer than a slice continues in the next message, so that no task
exceeds its time limits.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace

from django.conf import settings
from django.db import connection, connections, transaction
from pydantic import JsonValue

from diagnostics.redaction.redactor import redact, redact_json
from diagnostics.store.leases import MAX_STARTS
from failsoft.plans.execution import CallContext, Executed, Seams, count_awaited, run_step
from failsoft.plans.ordering import Frontier
from failsoft.plans.resolution import PlannedStep
from plans.models.run import Run, RunStep
from plans.runs import step_calls, working_store
from plans.runs.claims import RunClaim
from plans.runs.group_commit import open_commit
from plans.runs.loading import read_plan, read_rows
from plans.runs.records import end_columns, final_results, progress_of, report_end, settle_end
from plans.runs.submission import OUTPUT_PREFIX, enqueue_run
from plans.runs.worker_threads import KeptThreads, is_stopping
from plans.tools.registry import call_tool

crew_threads = KeptThreads("plans-step")


class Crew:
    """Performs the steps of a frontier, at most `limit` at a time.

    `perform(index)` runs a step and stores its result. `is_over()` is called before each
    step; True leaves the rest. An exception of `perform` stops the work and is raised to the
    caller after the running steps have ended.
    """

    def __init__(
        self,
        frontier: Frontier,
        perform: Callable[[int], None],
        is_over: Callable[[], bool],
        limit: int,
    ) -> None:
        self._frontier = frontier
        self._perform = perform
        self._is_over = is_over
        self._limit = limit
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._busy = self._waiting = 0
        self._helpers: list[Future[None]] = []
        self._failure: BaseException | None = None

    def work(self) -> None:
        try:
            self._take_part()
        except BaseException as error:  # noqa: BLE001 - a time limit during the wait
            with self._lock:
                self._failure = self._failure or error
                self._changed.notify_all()
        for helper in self._helpers:
            helper.result()
        if self._failure is not None:
            raise self._failure

    def _take_part(self) -> None:
        done: int | None = None
        error: BaseException | None = None
        while (index := self._next(done, error)) is not None:
            done = index
            try:
                self._perform(index)
            except BaseException as failure:  # noqa: BLE001 - raised again by work()
                error = failure

    def _next(self, done: int | None, error: BaseException | None) -> int | None:
        """Record the end of a step and take the next one, under one lock."""
        with self._lock:
            if done is not None:
                self._busy -= 1
                if error is None:
                    self._frontier.finish(done)
                else:
                    self._failure = self._failure or error
                if self._waiting:
                    self._changed.notify_all()
            while not self._frontier and self._busy and self._failure is None:
                self._waiting += 1
                self._changed.wait()
                self._waiting -= 1
            if not self._frontier or self._failure is not None or self._is_over():
                self._changed.notify_all()
                return None
            index = self._frontier.take()
            self._busy += 1
            if self._frontier and not self._waiting and len(self._helpers) < self._limit - 1:
                self._helpers.append(crew_threads.submit(self._help))
            return index

    def _help(self) -> None:
        try:
            self._take_part()
        finally:
            connections.close_all()


_SLICE_SECONDS = 240
# Plain values: reading `.value` of an enum for each row is slow.
_STARTED, _FINAL = RunStep.State.STARTED.value, RunStep.State.FINAL.value


class InlineRun:
    """The execution of one claim: the plan, its progress, and the writer of results."""

    def __init__(self, claim: RunClaim, payload: object) -> None:
        self.claim = claim
        self.run = claim.run
        self.rows = read_rows(self.run)
        self.plan = read_plan(payload, self.rows)
        self.progress = progress_of(self.plan, final_results(self.run))
        self.outputs: dict[int, JsonValue] = {}
        # The start count of each step whose call began and did not end.
        self.interrupted = {row.position: row.starts for row in self.rows if row.state == _STARTED}
        self.is_careful = claim.starts > 1
        # The worker died before it stored a start: it counts for each step.
        self.unseen_starts = int(self.is_careful and not self.interrupted)
        # The number of the next call of each step.
        self.starts = [max(row.starts, self.unseen_starts) + 1 for row in self.rows]
        self.seams = Seams(
            call_tool,
            self._read_stop,
            redact,
            redact_json,
            self._context_of,
            self.run.strict_degraded,
            self._begin,
        )
        self.commit = open_commit(claim)

    def go_on(self) -> None:
        """Run the steps without a result; end the run, or queue it for another slice."""
        if self.progress.results:
            stored = working_store.get_all(self.run, OUTPUT_PREFIX)
            for name, output in stored.items():
                self.outputs[int(name.removeprefix(OUTPUT_PREFIX))] = output
        frontier = self._frontier()
        self._work(frontier)
        self._close(is_over=not frontier)

    def give_up(self, reason: str) -> None:
        """Settle every step that has no result, without calling a tool."""
        self.seams = replace(self.seams, stop=lambda: reason)
        frontier = self._frontier()
        while frontier:
            index = frontier.take()
            self._store(index, self._skip_or_fail(index), time.monotonic())
            frontier.finish(index)
        self._close(is_over=True)

    def settle_poison(self) -> bool:
        """Settle the steps that were started too often, and queue the others; False if none was."""
        poison = [index for index, starts in self.interrupted.items() if starts >= MAX_STARTS]
        for index in poison:
            self._perform(index)
        if poison:
            self._close(is_over=False)
        return bool(poison)

    def _skip_or_fail(self, index: int) -> Executed:
        if index in self.interrupted:
            return step_calls.interruption_fault(self.plan.steps[index], self.interrupted[index])
        return self._step(index)

    def _frontier(self) -> Frontier:
        awaited = count_awaited(self.plan, self.progress.results)
        return Frontier(self.plan.dependents, awaited)

    def _work(self, frontier: Frontier) -> None:
        give_back_at = time.monotonic() + min(
            _SLICE_SECONDS, settings.FAILSOFT_TASK_SOFT_LIMIT_SECONDS / 2
        )

        def is_over() -> bool:
            return time.monotonic() > give_back_at or is_stopping()

        limit = settings.FAILSOFT_RUN_PARALLEL_STEPS
        if self.is_careful or connection.in_atomic_block:
            limit = 1
        try:
            Crew(frontier, self._perform, is_over, limit).work()
        except BaseException:
            # The queued results are valid all the same.
            with suppress(Exception):
                self.commit.close()
            raise

    def _close(self, *, is_over: bool) -> None:
        self.commit.close()
        if is_over:
            columns = end_columns(self.plan, self.progress)
            with transaction.atomic():
                self.claim.release(**columns)
                settle_end(self.run)
            report_end(self.run, columns)
        else:
            with transaction.atomic():
                self.claim.renew(state=Run.State.QUEUED, starts=0)
                enqueue_run(self.run)

    def _perform(self, index: int) -> None:
        began_at = time.monotonic()
        self._store(index, self._run(index), began_at)

    def _run(self, index: int) -> Executed:
        starts = self.interrupted.get(index)
        if starts is not None:
            step = self.plan.steps[index]
            if starts >= MAX_STARTS:
                return step_calls.interruption_fault(step, starts)
            if not step_calls.may_repeat(step):
                return step_calls.admit_unknown(step)
        return self._step(index)

    def _step(self, index: int) -> Executed:
        return run_step(self.plan, index, self.progress, self.outputs, self.seams)

    def _context_of(self, step: PlannedStep) -> CallContext:
        group = self.rows[step.index].call_group
        starts = self.starts[step.index]
        return step_calls.make_context(
            self.run, step, starts, group, lambda: self.commit.is_cancelled
        )

    def _begin(self, step: PlannedStep) -> str | None:
        """Store the start of a call; return why it must not happen any more, if so."""
        row = {
            "position": step.index,
            "state": _STARTED,
            "starts": self.starts[step.index],
            "started": self.claim.now(),
        }
        if self.is_careful or step_calls.has_side_effects(step):
            self.commit.put_now(step.index, row)
            return self._read_stop()
        self.commit.put(step.index, row)
        return None

    def _read_stop(self) -> str | None:
        if self.commit.is_cancelled:
            return "cancelled"
        stop_at = self.claim.stop_at
        if stop_at is not None and time.monotonic() >= stop_at:
            return "deadline_reached"
        return None

    def _store(self, index: int, executed: Executed, began_at: float) -> None:
        result, claim = executed.result, self.claim
        row = {
            "position": index,
            "state": _FINAL,
            "ok": result.ok,
            "skipped": result.skipped,
            "reason": result.reason,
            "error": result.error,
            "output": result.output,
            "starts": self.starts[index],
            "started": None if result.skipped else began_at + claim.ahead,
            "ended": claim.now(),
        }
        self.progress.record(self.plan, index, result)
        if index in self.plan.referenced:
            self.outputs[index] = raw = executed.raw_output
            if result.ok:
                self.commit.put(index, row, {f"{OUTPUT_PREFIX}{index}": raw})
                return
        self.commit.put(index, row)
