"""One goal through plan, do, check and act: the routes of the graph decide what follows.

1. Claim the goal; without a claim there is nothing to do.
2. Enter the graph where the row says: at planning, or at the check of a run that has ended.
3. Walk it node by node. A submitted plan suspends the walk: its run enqueues this goal again.
4. `respond_node` ends the goal, or lets it wait for the user, with the terminal event in the same
   transaction. Every write is fenced by the claim.
"""

import secrets
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import DatabaseError, transaction

from agents.applying import apply_actions, evaluate_actions
from agents.claims import Claim, LeaseLostError, claim_goal, claim_poisoned
from agents.core.actions import ParseResult
from agents.core.attempts import (
    Ending,
    Exhausted,
    Interrupted,
    Succeeded,
    Unanswered,
)
from agents.core.breaker import JITTER_SHARE, SHORTEST_SECONDS
from agents.core.interpreting import Schema
from agents.core.outcomes import (
    Outcome,
    degraded_reason,
    outcome_of_ending,
    outcome_of_good_ladders,
)
from agents.core.proposals import payload_of
from agents.core.responding import respond
from agents.core.routing import ROUTES, Node
from agents.core.stubs import stub_plan, stub_proposal
from agents.core.task_state import (
    Phase,
    Status,
    TaskState,
    parse_failure_reason,
)
from agents.models import ActionBatch, Attempt, Goal
from agents.planning import CALLS, generate_plan_with_retry
from agents.policies import deadline_of, owner_of
from agents.recording import model_name, provider_name, record_degraded, schema_of
from agents.requesting import request_of
from agents.submitting import MESSAGE_LEASE, QUEUE, RUN_TASK
from diagnostics import clock
from diagnostics.core.cleaning import clean_text
from diagnostics.outbox import enqueue
from diagnostics.redacting import redact
from plans import working
from plans.models import Run
from plans.submitting import submit_run

logger = structlog.get_logger(__name__)

_random = secrets.SystemRandom()

QUESTION_BYTES = 4 * 1024
ANSWER_BYTES = 8 * 1024
STUB = "stub"


def run_goal(goal_id: UUID) -> None:
    """Move a goal as far as it goes now; safe to call any number of times, anywhere."""
    claim = claim_goal(goal_id)
    if claim is None:
        return
    try:
        _Walk(claim).go_on()
    except LeaseLostError:
        logger.warning("goal_lease_lost", goal_id=str(goal_id))
    except BaseException:
        # Without a database the lease runs out by itself.
        with suppress(DatabaseError):
            claim.drop()
        raise


def end_poisoned(goal_id: UUID) -> None:
    """End a goal that killed its workers, without asking anybody (C4)."""
    claim = claim_poisoned(goal_id)
    if claim is None:
        return
    walk = _Walk(claim)
    walk.state = walk.state.unfinished(
        {"reason": "poison", "starts": claim.goal.starts}
    )
    walk.respond()
    logger.error("goal_poisoned", goal_id=str(goal_id))


class _Walk:
    """One claim at work: the goal's state, and what the nodes hand to each other."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.goal = claim.goal
        self.schema = schema_of(self.goal)
        self.state = TaskState(
            cycle=self.goal.cycle,
            last_validation_error=self.goal.last_validation_error,
            execution_eval=self.goal.execution_eval,
            next_user_question=self.goal.next_user_question,
        )
        self.ending: Ending | None = None
        self.decision: dict[str, Any] = {}
        self.batch: ActionBatch | None = None
        self.is_suspended = False

    def go_on(self) -> None:
        """Walk from the entry to the end, or to where the goal has to wait."""
        nodes = {
            Node.NEXT_STEP: self.plan,
            Node.EXECUTE_STEP: self.execute,
            Node.CHECK: self.check,
            Node.ACT: self.act,
            Node.RESPOND: self.respond,
        }
        node = self._entry()
        while node is not Node.END and not self.is_suspended:
            nodes[node]()
            node = ROUTES[node](self.state)

    def _entry(self) -> Node:
        run = self.goal.current_run
        if run is not None and run.state not in (Run.State.ENDED, Run.State.POISON):
            self.claim.release()
            return Node.END
        if self.claim.is_cancelled():
            self._cancel()
            return Node.RESPOND
        return Node.NEXT_STEP if run is None else Node.CHECK

    def plan(self) -> None:
        """Climb the ladder of this cycle and settle what it means for the goal."""
        self.ending = generate_plan_with_retry(self.claim, request_of(self.goal))
        match self.ending:
            case Succeeded(value):
                self._decide(value)
            case Exhausted(attempts) if self._may_stub():
                self._record_degraded(self.ending, attempts, stubbed=True)
                self.claim.renew(plan_source=STUB)
                self.goal.plan_source = STUB
                self._decide(self._stand_in(attempts))
            case Exhausted(attempts, last_error):
                logger.warning(
                    "plan_generation_failed",
                    correlation_id=self.goal.correlation_id,
                    cycle=self.goal.cycle,
                    attempts=attempts,
                    last_error=last_error.error_type.value,
                )
                names = provider_name(self.goal), model_name(self.goal)
                self.state = self.state.degraded(self.schema, attempts, *names)
                self._keep_failed_calls()
            case Interrupted() if outcome_of_ending(self.ending) is Outcome.CANCELLED:
                self._cancel()
            case Unanswered(_, _, wait) if wait is not None and self._put_off(wait):
                self.is_suspended = True
            case _:
                self.state = self.state.stopped(degraded_reason(self.ending, ""))

    def execute(self) -> None:
        """Hand the plan over to the runner, which enqueues this goal when the run has ended."""
        if self.claim.is_cancelled():
            self._cancel()
            return
        if self.schema is Schema.ACTIONS:
            self._apply()
            return
        payload = payload_of(self.decision)
        if payload is None:
            return
        self.is_suspended = True
        with transaction.atomic():
            run = submit_run(
                self.goal.project_id,
                payload,
                self.goal.correlation_id,
                cycle=self.goal.cycle,
                on_end_task=RUN_TASK,
                on_end_args={"goal_id": str(self.goal.pk)},
                deadline_at=deadline_of(self.goal),
            )
            self.claim.release(
                current_run=run,
                pdca_phase=Goal.Phase.DO,
                last_validation_error=None,
                execution_eval=None,
                next_user_question=None,
            )

    def check(self) -> None:
        """Find whether the goal is reached: by the planner's word, or by the run of its plan."""
        finished = self.decision.get("kind") == "finish"
        run = self.goal.current_run
        found: dict[str, Any] = {"cycle": self.goal.cycle, "complete": finished}
        if self.batch is not None:
            found |= evaluate_actions(self.batch)
        if run is not None:
            completed = run.task_status == Run.TaskStatus.COMPLETED
            found |= {
                "run_id": str(run.pk),
                "task_status": run.task_status,
                "reason": (run.meta or {}).get("reason"),
                "complete": completed and self.schema is Schema.PLAN,
            }
        self.state = self.state.model_copy(
            update={"pdca_phase": Phase.CHECK, "execution_eval": found}
        )

    def act(self) -> None:
        """Finish, go round once more, or give up when the cycles are used up (X-11)."""
        found = self.state.execution_eval or {}
        if found.get("complete"):
            self.state = self.state.model_copy(
                update={"status": Status.COMPLETED, "pdca_phase": Phase.ACT}
            )
        elif self.batch is not None or self.goal.cycle >= self.goal.max_iterations:
            self.state = self.state.unfinished(found)
        else:
            self._begin_cycle(found)

    def respond(self) -> None:
        """Tell how it ended, or what is wanted, and store it with the terminal event."""
        outcome = self._outcome()
        answer = self.decision.get("answer") or None
        said = redact(clean_text(answer), ANSWER_BYTES) if answer else None
        message = respond(self.state, outcome, self.goal.correlation_id, said)
        columns = self.state.model_dump(mode="json", exclude={"cycle"})
        with transaction.atomic():
            if self.state.status.is_terminal:
                columns |= {"outcome": outcome, "ended_at": clock.now()}
                working.expire(self.goal.project_id, owner_of(self.goal))
            self.claim.release(
                **columns, user_text=message.text, help=list(message.help)
            )
            self._record_end()

    def _apply(self) -> None:
        """Apply what was decoded, once; what was done is what the person is told (S4-20)."""
        result = ParseResult.from_json(self.decision)
        with transaction.atomic():
            self.claim.renew(pdca_phase=Goal.Phase.DO)
            self.batch = apply_actions(self.goal, result)
        self.decision = {"answer": self.batch.summary}

    def _keep_failed_calls(self) -> None:
        """Keep with the goal why none of the last answer's calls could be used (S4-26)."""
        if self.schema is not Schema.ACTIONS:
            return
        name = f"{CALLS}:{self.goal.cycle}"
        stored = working.get(self.goal.project_id, owner_of(self.goal), name)
        with transaction.atomic():
            self.claim.renew()
            apply_actions(self.goal, ParseResult.from_json(stored))

    def _stand_in(self, attempts: int) -> dict[str, Any]:
        """What stands in for a plan, with a warning in the log (S1-91)."""
        logger.warning(
            "stub_fallback",
            correlation_id=self.goal.correlation_id,
            cycle=self.goal.cycle,
            attempts=attempts,
        )
        if self.schema is not Schema.PLAN:
            return stub_proposal()
        return stub_plan(request_of(self.goal).goal, self.goal.tools)

    def _may_stub(self) -> bool:
        """Whether a stub may stand in; none stands in for actions, which would claim to be done."""
        wanted = self.goal.retry.get("use_stub_fallback", False)
        return bool(wanted) and self.schema is not Schema.ACTIONS

    def _decide(self, value: dict[str, Any]) -> None:
        self.decision = value
        self.state = self.state.planned()
        if value.get("kind") == "ask_user":
            question = redact(clean_text(value["question"]), QUESTION_BYTES)
            waiting = {
                "waiting_for": value.get("need", "input"),
                "since": clock.now().isoformat(),
            }
            self.state = self.state.asking(question).model_copy(
                update={"execution_eval": waiting}
            )

    def _put_off(self, wait_seconds: float) -> bool:
        """Come back when a breaker may let a call through; not when the time is over before.

        Up to a quarter later, so that not everybody comes back at once.
        """
        spread = 1 + JITTER_SHARE * _random.random()
        pause = timedelta(seconds=max(wait_seconds, SHORTEST_SECONDS) * spread)
        back_at, deadline = clock.now() + pause, deadline_of(self.goal)
        if deadline is not None and back_at >= deadline:
            return False
        waits = {"reason": Outcome.CIRCUIT_OPEN, "retry_at": back_at.isoformat()}
        with transaction.atomic():
            self.claim.put_off(pause + MESSAGE_LEASE, execution_eval=waits)
            arguments = {"goal_id": str(self.goal.pk)}
            enqueue(RUN_TASK, arguments, QUEUE, self.goal.project_id, delay=pause)
        return True

    def _begin_cycle(self, found: dict[str, Any]) -> None:
        self.goal.cycle += 1
        self.goal.current_run = None
        self.state = TaskState(cycle=self.goal.cycle, execution_eval=found)
        self.decision = {}
        self.claim.renew(
            cycle=self.goal.cycle,
            current_run=None,
            pdca_phase=Goal.Phase.PLAN,
            execution_eval=found,
        )

    def _cancel(self) -> None:
        self.state = self.state.model_copy(
            update={"status": Status.CANCELLED, "next_user_question": None}
        )

    def _outcome(self) -> Outcome | None:
        if self.state.status is Status.CANCELLED:
            return Outcome.CANCELLED
        if self.ending is not None and not isinstance(self.ending, Succeeded):
            return self._is_stubbed() or outcome_of_ending(self.ending)
        good = self.goal.attempts.filter(state=Attempt.State.VALID).values_list(
            "attempt", flat=True
        )
        numbers = list(good)
        if not numbers:
            return self._is_stubbed()
        return outcome_of_good_ladders(numbers, stubbed=self.goal.plan_source == STUB)

    def _is_stubbed(self) -> Outcome | None:
        return Outcome.STUBBED if self.goal.plan_source == STUB else None

    def _record_end(self) -> None:
        """Store the terminal event when it is planning that failed."""
        if self.state.status is Status.FAILED and self.ending is not None:
            if isinstance(self.ending, Succeeded) or self.goal.plan_source == STUB:
                return
            self._record_degraded(self.ending, self.ending.attempts, stubbed=False)

    def _record_degraded(self, ending: Ending, attempts: int, *, stubbed: bool) -> None:
        last = (
            self.goal.attempts.filter(cycle=self.goal.cycle)
            .order_by("-attempt")
            .first()
        )
        reason = degraded_reason(ending, parse_failure_reason(self.schema))
        # Before a breaker a goal ends when its time is over, not with its last attempt.
        attempted = reason != Outcome.CIRCUIT_OPEN and last and last.occurred_at
        ended_at = attempted or clock.now()
        record_degraded(self.goal, reason, attempts, ended_at, stubbed=stubbed)
