"""`next_step_node`: ask the model for a plan, or use the one submitted with the goal.

The attempts of a cycle are stored one by one, so that a cycle resumes after a crash:

1. Get the next attempt from the generator `attempts`.
2. An attempt that has a row was made before: its stored result is used. A row
   still `calling` belongs to a worker that died: its call counts as spent.
3. Otherwise: stop if the budget is spent or the goal cancelled; store the row; call; store the
   result together with its event, in one transaction, fenced by the claim.
4. Send the result to the generator, until it ends.
"""

import secrets
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

import structlog
from django.db import transaction

from agents.actions.applying import apply_actions
from agents.breakers.store import Guard
from agents.cycle.attempt_rows import (
    PREVIEW_BYTES,
    AttemptRows,
    UnknownTools,
    call_model,
    note_reply,
)
from agents.cycle.planner_input import fill_plan, request_of
from agents.cycle.walk import STUB, Walk, record_attempts
from agents.fix_patterns.store import learn
from agents.goals import policies
from agents.goals.claims import RENEW_SECONDS, GoalClaim
from agents.goals.events import model_name, provider_name
from agents.goals.models import Attempt, Goal
from agents.goals.records import feedback_of
from agents.goals.state import (
    NODES,
    OUT_OF_BUDGET,
    PlanningOutcome,
    degraded_reason,
    outcome_of_ending,
    spent_dimension,
)
from agents.goals.submission import GIVEN, MESSAGE_LEASE, QUEUE, RUN_TASK
from agents.llm.provider import Completion, ProviderError, RefusedContentError
from agents.llm.transport import Reply
from diagnostics import clock
from diagnostics.redaction.redactor import redact, redact_json
from diagnostics.store.leases import kept_alive
from diagnostics.store.outbox import enqueue
from failsoft.actions import ParseResult
from failsoft.actions.entries import TOOLSETS
from failsoft.actions.verdicts import failure_items, judge_calls
from failsoft.events import CallErrorType
from failsoft.json_values import JSON, clean_text
from failsoft.retry.answers import (
    Misunderstood,
    PlannerSchema,
    Understood,
    explain_reasoning,
    interpret,
)
from failsoft.retry.breaker import JITTER_SHARE, SHORTEST_SECONDS
from failsoft.retry.engine import (
    CallFailed,
    Ending,
    Exhausted,
    Feedback,
    Halted,
    HaltReason,
    Interrupted,
    Invalid,
    PlannedAttempt,
    Result,
    Succeeded,
    Unanswered,
    Valid,
    attempts,
)
from failsoft.retry.policy import OutputMode
from failsoft.retry.prompts import Prompt, Request, build_prompt, tools_for
from failsoft.retry.stubs import stub_plan, stub_proposal
from plans.runs import working_store
from plans.tools.registry import call_check, nearest_tool

CALLS = "calls"


def generate_plan_with_retry(claim: GoalClaim, request: Request) -> Ending:
    """Make the attempts of the goal's current cycle; LeaseLostError if the claim was lost.

    The only way from a goal to a plan, for every provider.
    """
    goal, node = claim.goal, NODES[request.schema]
    guard = Guard.of(goal.project_id, provider_name(goal) or "", model_name(goal) or "", node)
    shell = _Shell(claim, request, guard, AttemptRows(claim, node))
    policy = policies.policy_of(goal, request)
    # The breakers may allow fewer, given the attempts already stored.
    steps = attempts(guard.limit(policy, shell.rows.stored().count()))
    attempt = next(steps)
    while True:
        try:
            attempt = steps.send(shell.settle(attempt))
        except StopIteration as stop:
            ending: Ending = stop.value
            guard.settle_attempts(ending)
            return ending


@dataclass(slots=True)
class _Shell:
    claim: GoalClaim
    request: Request
    guard: Guard
    rows: AttemptRows

    @property
    def goal(self) -> Goal:
        return self.claim.goal

    def settle(self, attempt: PlannedAttempt) -> Result:
        """Return the result of one attempt: stored, refused or made now."""
        row = self.rows.stored().filter(attempt=attempt.number).first()
        if row is None:
            return self._stop() or self._ask(attempt)
        if row.state == Attempt.State.CALLING:
            return self.rows.write_off(row)
        return self.rows.recall(row)

    def _stop(self) -> Result | None:
        if self.claim.is_cancelled():
            return Halted(HaltReason.CANCELLED)
        spent = spent_dimension(policies.budget_of(self.goal), policies.spent_by(self.goal))
        if spent == "seconds" and policies.was_put_off(self.goal) and not self.guard.calls:
            # The time was spent waiting for a breaker: that is the reason, not the budget.
            return CallFailed(CallErrorType.CIRCUIT_OPEN)
        if spent:
            return Halted(HaltReason.BUDGET_EXHAUSTED)
        if denied := self.guard.admit_call():
            return CallFailed(CallErrorType.CIRCUIT_OPEN, denied.retry_after_seconds)
        return None

    def _ask(self, attempt: PlannedAttempt) -> Result:
        prompt = build_prompt(self.request, attempt)
        row = self.rows.begin(attempt, prompt, self.request.withheld_patterns)
        self.guard.renew()
        started = time.monotonic()
        reply = self._call(attempt, prompt)
        own = self.goal.planner_model.max_output_tokens
        if attempt.max_output_tokens > own and isinstance(reply.answer, RefusedContentError):
            # Raised after a cut answer, perhaps above what the model takes.
            row.max_output_tokens = own
            reply = self._call(replace(attempt, max_output_tokens=own), prompt)
        self.guard.settle_call(reply)
        note_reply(row, reply, started)
        if isinstance(reply.answer, ProviderError):
            return self._wait(row, reply.answer) or self._store_failure(row, reply.answer)
        parsed, written = self._read(reply.answer)
        if isinstance(parsed, Misunderstood):
            tokens = row.output_tokens, row.reasoning_tokens
            parsed = explain_reasoning(parsed, written, *tokens)
        row.preview = redact(clean_text(written), PREVIEW_BYTES)
        row.repairs = [item.model_dump() for item in parsed.repairs]
        row.coerced = redact_json([item.model_dump() for item in parsed.coerced])
        if isinstance(parsed, Understood):
            return self._store_answer(row, parsed)
        items: JSON = [item.model_dump() for item in parsed.errors]
        known = self.goal.tools
        unknown = [(name, nearest_tool(name, known)) for name in parsed.unknown_tools]
        self.rows.fail(row, Attempt.State.INVALID, parsed.error_type, items, unknown)
        return Invalid(Feedback(clean_text(written), parsed.error_type, parsed.errors))

    def _wait(self, row: Attempt, error: ProviderError) -> CallFailed | None:
        """Forget the attempt if the provider is worth a wait that the goal has time for.

        It is made again then, as the transport repeats it after short waits.
        """
        wait = error.wait_seconds
        if wait is None or not policies.can_wait(self.goal, wait):
            return None
        logger.warning(
            "call_postponed",
            correlation_id=self.goal.correlation_id,
            attempt=row.attempt,
            error=str(error),
            wait_seconds=wait,
        )
        working_store.put(self.goal, self.rows.retries_name(row), row.transport_retries + 1)
        row.delete()
        return CallFailed(error.error_type, wait)

    def _read(self, completion: Completion) -> tuple[Understood | Misunderstood, str]:
        text, finish_reason = completion.text, completion.finish_reason
        if self.request.schema is not PlannerSchema.ACTIONS:
            check = call_check(self.goal.tools)
            return interpret(text, finish_reason, self.request.schema, check), text
        toolset = TOOLSETS[self.goal.toolset or ""]
        judged = judge_calls(completion.tool_calls, text, finish_reason, toolset)
        # Stored also when nothing can be applied: the goal then shows what failed.
        working_store.put(self.goal, f"{CALLS}:{self.goal.cycle}", judged.result.to_json())
        return judged.verdict, judged.written

    def _call(self, attempt: PlannedAttempt, prompt: Prompt) -> Reply:
        model = self.goal.planner_model
        tools = tools_for(self.request, attempt)
        is_native = (
            self.request.schema is PlannerSchema.ACTIONS and attempt.output_mode is OutputMode.TOOLS
        )
        with kept_alive(RENEW_SECONDS, self.claim.renew, self.guard.renew):
            return call_model(
                model,
                attempt,
                prompt,
                self.guard,
                schema_name=self.request.schema.value,
                json_schema={}
                if is_native
                else policies.schema_for(model, self.request.schema, tools),
                tools=tools if is_native else (),
                streaming=model.streaming,
            )

    def _store_answer(self, row: Attempt, parsed: Understood) -> Result:
        row.state = Attempt.State.VALID
        is_actions = self.request.schema is PlannerSchema.ACTIONS
        unknown = self._settle_actions(row, parsed) if is_actions else []
        with transaction.atomic():
            self.rows.end(row, unknown)
            working_store.put(self.goal, self.rows.answer_name(row), parsed.value)
            learn(self.goal, row, self.request.schema, parsed.value)
        return Valid(parsed.value)

    def _settle_actions(self, row: Attempt, parsed: Understood) -> UnknownTools:
        """Store which calls of a valid answer failed; return its unknown tools."""
        result = ParseResult.from_json(parsed.value)
        items = failure_items(result.failures)
        row.errors = redact_json([item.model_dump() for item in items])
        tool_names = [tool.name for tool in self.request.tools]
        return [
            (clean_text(name), next(iter(get_close_matches(name, tool_names, n=1)), None))
            for name in result.unknown_tools
        ]

    def _store_failure(self, row: Attempt, error: ProviderError) -> Result:
        items: JSON = [{"code": error.error_type.value, "message": str(error)}]
        self.rows.fail(row, Attempt.State.CALL_FAILED, error.error_type, items)
        return CallFailed(error.error_type)


logger = structlog.get_logger(__name__)

_random = secrets.SystemRandom()

QUESTION_BYTES = 4 * 1024


def plan(walk: Walk) -> None:
    goal = walk.goal
    if goal.plan_source == GIVEN:
        if walk.claim.is_cancelled():
            walk.cancel()
        elif policies.is_time_over(goal):
            _stop(walk, OUT_OF_BUDGET)
        else:
            submitted = working_store.get(goal, "plan")
            _decide(walk, fill_plan(submitted, goal.cycle, feedback_of(goal)))
        return
    walk.ending = generate_plan_with_retry(walk.claim, request_of(goal))
    match walk.ending:
        case Succeeded(value):
            _decide(walk, value)
        case Exhausted(attempts) if _may_stub(walk):
            _use_stub(walk, attempts)
        case Exhausted():
            _degrade(walk, walk.ending)
        case Interrupted() if outcome_of_ending(walk.ending) is PlanningOutcome.CANCELLED:
            walk.cancel()
        case Unanswered(_, kind, wait) if wait is not None and put_off(walk, wait, kind):
            walk.is_suspended = True
        case _:
            _stop(walk, degraded_reason(walk.ending, ""))


def _stop(walk: Walk, reason: str) -> None:
    is_spent = reason == OUT_OF_BUDGET
    spent = spent_dimension(policies.budget_of(walk.goal), policies.spent_by(walk.goal))
    walk.state = walk.state.stopped(reason, spent if is_spent else None)


def put_off(
    walk: Walk, wait_seconds: float, reason: CallErrorType = CallErrorType.CIRCUIT_OPEN
) -> bool:
    """Requeue the goal until a breaker or the provider may admit a call; False if time runs out.

    The delay is up to a quarter longer, so that goals do not all return at once.
    """
    spread = 1 + JITTER_SHARE * _random.random()
    if not policies.can_wait(walk.goal, wait_seconds):
        return False
    pause = timedelta(seconds=max(wait_seconds, SHORTEST_SECONDS) * spread)
    evaluation = {"reason": reason, "retry_at": (clock.now() + pause).isoformat()}
    with transaction.atomic():
        walk.claim.put_off(pause + MESSAGE_LEASE, execution_eval=evaluation)
        arguments = {"goal_id": str(walk.goal.pk)}
        enqueue(RUN_TASK, arguments, QUEUE, walk.goal.project_id, delay=pause)
    return True


def _degrade(walk: Walk, ending: Exhausted) -> None:
    logger.warning(
        "plan_generation_failed",
        correlation_id=walk.goal.correlation_id,
        cycle=walk.goal.cycle,
        attempts=ending.attempts,
        last_error=ending.last_error.error_type.value,
    )
    names = provider_name(walk.goal), model_name(walk.goal)
    walk.state = walk.state.degraded(walk.schema, ending.attempts, *names)
    if walk.schema is PlannerSchema.ACTIONS:
        # The goal shows why none of the last answer's calls could be applied.
        stored = working_store.get(walk.goal, f"{CALLS}:{walk.goal.cycle}")
        with transaction.atomic():
            walk.claim.renew()
            apply_actions(walk.goal, ParseResult.from_json(stored))


def _use_stub(walk: Walk, attempts: int) -> None:
    record_attempts(walk, attempts, stubbed=True)
    walk.claim.renew(plan_source=STUB)
    walk.goal.plan_source = STUB
    logger.warning(
        "stub_fallback",
        correlation_id=walk.goal.correlation_id,
        cycle=walk.goal.cycle,
        attempts=attempts,
    )
    if walk.schema is not PlannerSchema.PLAN:
        _decide(walk, stub_proposal())
        return
    _decide(walk, stub_plan(request_of(walk.goal).goal, walk.goal.tools))


def _may_stub(walk: Walk) -> bool:
    """Whether a stub may replace the plan; never for actions, which it would claim were applied."""
    is_enabled = walk.goal.retry.get("use_stub_fallback", False)
    return bool(is_enabled) and walk.schema is not PlannerSchema.ACTIONS


def _decide(walk: Walk, value: dict[str, Any]) -> None:
    walk.decision = value
    walk.state = walk.state.planned()
    if value.get("kind") == "ask_user":
        question = redact(clean_text(value["question"]), QUESTION_BYTES)
        walk.state = walk.state.asking(question)
        since = clock.now().isoformat()
        walk.move(execution_eval={"waiting_for": value.get("need", "input"), "since": since})
