"""The shell of the ladder: it calls, stores each attempt, and goes on after a crash.

1. Ask the pure ladder for the next attempt.
2. An attempt that has a row was made before: its result is remembered, never asked for again. A row
   still `calling` belongs to a worker that died: its call is spent.
3. Otherwise: stop if the budget is spent or the goal cancelled; store the row; call; store
   what came of it together with its event, in one transaction, fenced by the claim.
4. Send the result to the ladder, until it ends.
"""

import time
from dataclasses import dataclass
from difflib import get_close_matches

import structlog
from django.db import transaction

from agents.claims import Claim, kept_alive
from agents.core.actions import ParseResult
from agents.core.actions.catalogue import TOOLSETS
from agents.core.actions.verdicts import failure_items, judge_calls
from agents.core.answer_schemas import answer_schema
from agents.core.attempts import (
    Attempt,
    CallFailed,
    Ending,
    Feedback,
    Halted,
    HaltReason,
    Invalid,
    LadderPolicy,
    OutputMode,
    Result,
    Valid,
    attempts,
)
from agents.core.budgets import Budget, Spent, spent_dimension
from agents.core.interpreting import (
    Misunderstood,
    Schema,
    Understood,
    interpret,
    unknown_tools,
)
from agents.core.offers import ToolOffer
from agents.core.outcomes import Outcome
from agents.core.prompts import Prompt, Request, build_prompt, tools_for
from agents.core.retry import RetryConfig
from agents.core.task_state import NODES
from agents.guarding import Guard
from agents.models import Attempt as AttemptRow
from agents.models import Goal, LanguageModel
from agents.providers.base import Completion, CompletionRequest, ProviderError
from agents.providers.registry import open_provider
from agents.providers.transport import MAX_RETRIES, Reply, call
from agents.recording import model_name, provider_name, record_attempt
from diagnostics import clock
from diagnostics.core.cleaning import clean_text
from diagnostics.core.events import CallErrorType, ParseErrorType, ValidationErrorItem
from diagnostics.redacting import redact, redact_json
from plans import working
from plans.tools.registry import nearest_tool, offered_tools, registered_tools

logger = structlog.get_logger(__name__)

PREVIEW_BYTES = 8 * 1024
FEEDBACK_BYTES = 8 * 1024
LOGGED_INTENT_BYTES = 200
CALLS = "calls"
FAILED_STATES = (AttemptRow.State.INVALID, AttemptRow.State.CALL_FAILED)
LOST = "The worker stopped during this call; nobody knows what was answered."


def generate_plan_with_retry(claim: Claim, request: Request) -> Ending:
    """Climb the ladder of the goal's present cycle to its end; LeaseLostError when overtaken.

    The only way from a goal to a plan, for every provider (S1-3).
    """
    shell = _Shell(claim, request, _guard_of(claim.goal, request))
    steps = attempts(shell.limit(policy_of(claim.goal, request)))
    attempt = next(steps)
    while True:
        try:
            attempt = steps.send(shell.settle(attempt))
        except StopIteration as stop:
            ending: Ending = stop.value
            shell.guard.settle_ladder(ending)
            return ending


def _guard_of(goal: Goal, request: Request) -> Guard:
    return Guard.of(
        goal.project_id,
        provider_name(goal) or "",
        model_name(goal) or "",
        NODES[request.schema],
    )


def policy_of(goal: Goal, request: Request) -> LadderPolicy:
    """The ladder's course as the goal and its model's row set it (X-2, X-21)."""
    model = goal.language_model
    first, last = _output_modes(model, request)
    return LadderPolicy(
        retry=RetryConfig.model_validate(goal.retry),
        output_mode=first,
        last_output_mode=last,
        max_output_tokens=model.max_output_tokens,
        max_output_tokens_ceiling=4 * model.max_output_tokens,
        temperature=model.temperature,
        timeout_seconds=model.attempt_timeout_seconds,
        optional_constraints=request.optional_constraints,
    )


def _output_modes(
    model: LanguageModel, request: Request
) -> tuple[OutputMode, OutputMode]:
    """The modes of the first attempts and of the last one (X-21)."""
    first, last = OutputMode(model.output_mode), OutputMode(model.last_output_mode)
    if request.schema is Schema.ACTIONS:
        first = _mode_of_calls(model)
    is_possible = last is not OutputMode.TEXT and last in model.supported_output_modes
    return first, last if is_possible else first


def _mode_of_calls(model: LanguageModel) -> OutputMode:
    """Native calls (X-19), unless the model is known to have none: then it writes them (X-21)."""
    known = model.supported_output_modes
    if model.output_mode == OutputMode.SCHEMA:
        return OutputMode.SCHEMA
    if not known or OutputMode.TOOLS in known:
        return OutputMode.TOOLS
    return OutputMode.SCHEMA if OutputMode.SCHEMA in known else OutputMode.TEXT


def offers_for(goal: Goal) -> tuple[ToolOffer, ...]:
    """The tools a goal's planner is told about: those it names, or all that are offered."""
    if goal.toolset is not None:
        return TOOLSETS[goal.toolset].offers()
    return tuple(
        ToolOffer(tool.name, tool.description, tool.schema())
        for tool in offered_tools()
        if goal.tools is None or tool.name in goal.tools
    )


def spent_by(goal: Goal) -> Spent:
    """What the goal has used so far, over all cycles; waiting for the user is not counted."""
    rows = list(goal.attempts.values_list("input_tokens", "output_tokens"))
    tokens = sum((given or 0) + (made or 0) for given, made in rows)
    waited = float(goal.budget.get("waited_seconds", 0))
    elapsed = (
        (clock.now() - goal.started_at).total_seconds() if goal.started_at else 0.0
    )
    return Spent(len(rows), tokens, elapsed - waited)


def budget_of(goal: Goal) -> Budget:
    """The ceilings of a goal."""
    return Budget.model_validate(
        {key: goal.budget[key] for key in Budget.model_fields if key in goal.budget}
    )


@dataclass(slots=True)
class _Shell:
    claim: Claim
    request: Request
    guard: Guard

    def limit(self, policy: LadderPolicy) -> LadderPolicy:
        """The ladder that the breakers allow, given the attempts that were made before."""
        made = self.goal.attempts.filter(cycle=self.goal.cycle, node=self.node)
        return self.guard.limit(policy, made.count())

    @property
    def goal(self) -> Goal:
        return self.claim.goal

    @property
    def node(self) -> str:
        return NODES[self.request.schema]

    def settle(self, attempt: Attempt) -> Result:
        """Remember, refuse or make one attempt."""
        row = self.goal.attempts.filter(
            cycle=self.goal.cycle, node=self.node, attempt=attempt.number
        ).first()
        if row is None:
            return self._stop() or self._ask(attempt)
        if row.state == AttemptRow.State.CALLING:
            return self._write_off(row)
        return self._recall(row)

    def _stop(self) -> Result | None:
        """Why no further call may be made, if so."""
        if self.claim.is_cancelled():
            return Halted(HaltReason.CANCELLED)
        spent = spent_dimension(budget_of(self.goal), spent_by(self.goal))
        if spent == "seconds" and was_put_off(self.goal) and not self.guard.calls:
            # The time went by before a breaker: that is the reason, not the budget.
            return CallFailed(CallErrorType.CIRCUIT_OPEN)
        if spent:
            return Halted(HaltReason.BUDGET_EXHAUSTED)
        if denied := self.guard.admit_call():
            return CallFailed(CallErrorType.CIRCUIT_OPEN, denied.retry_after_seconds)
        return None

    def _ask(self, attempt: Attempt) -> Result:
        prompt = build_prompt(self.request, attempt)
        row = self._begin(attempt, prompt)
        self.guard.renew()
        begun = time.monotonic()
        reply = self._call(attempt, prompt)
        self.guard.settle_call(reply)
        row.latency_ms = round((time.monotonic() - begun) * 1000)
        row.transport_retries = reply.retries
        if reply.completion is None:
            return self._store_failure(row, reply.error)
        completion = reply.completion
        row.finish_reason = clean_text(completion.finish_reason or "")[:64] or None
        row.input_tokens = completion.input_tokens
        row.output_tokens = completion.output_tokens
        found, written = self._read(completion)
        row.preview = redact(clean_text(written), PREVIEW_BYTES)
        row.repairs = [item.model_dump() for item in found.repairs]
        row.coerced = redact_json([item.model_dump() for item in found.coerced])
        if isinstance(found, Understood):
            return self._store_answer(row, found)
        return self._store_invalid(row, found, written)

    def _read(self, completion: Completion) -> tuple[Understood | Misunderstood, str]:
        """What an answer says, and the answer as it was written."""
        text, finish_reason = completion.text, completion.finish_reason
        if self.request.schema is not Schema.ACTIONS:
            return interpret(text, finish_reason, self.request.schema), text
        toolset = TOOLSETS[self.goal.toolset or ""]
        judged = judge_calls(completion.tool_calls, text, finish_reason, toolset)
        # Kept also when nothing can be applied: the goal then tells what failed (S4-26).
        self._keep(f"{CALLS}:{self.goal.cycle}", judged.result.to_json())
        return judged.verdict, judged.written

    def _keep(self, name: str, value: object) -> None:
        working.put(self.goal.project_id, owner_of(self.goal), name, value)

    def _begin(self, attempt: Attempt, prompt: Prompt) -> AttemptRow:
        """Store that a call is about to be made: a crash cannot spend the budget twice."""
        with transaction.atomic():
            self.claim.renew()
            return AttemptRow.objects.create(
                project_id=self.goal.project_id,
                goal=self.goal,
                node=self.node,
                cycle=self.goal.cycle,
                attempt=attempt.number,
                provider=provider_name(self.goal),
                model=model_name(self.goal),
                output_mode=attempt.output_mode,
                simplified=attempt.simplified,
                dropped_constraints=redact_json(list(attempt.dropped_constraints)),
                max_output_tokens=attempt.max_output_tokens,
                temperature=attempt.temperature,
                timeout_seconds=attempt.timeout_seconds,
                feedback=redact(clean_text(prompt.feedback), FEEDBACK_BYTES),
                called_at=clock.now(),
            )

    def _call(self, attempt: Attempt, prompt: Prompt) -> Reply:
        model = self.goal.language_model
        tools = tools_for(self.request, attempt)
        is_native = (
            self.request.schema is Schema.ACTIONS
            and attempt.output_mode is OutputMode.TOOLS
        )
        try:
            provider = open_provider(model.provider)
        except ProviderError as error:
            return Reply(None, error, 0, was_sent=False)
        with kept_alive(self.claim, self.guard.renew):
            return call(
                provider,
                CompletionRequest(
                    model=model.name,
                    system=prompt.system,
                    user=prompt.user,
                    output_mode=attempt.output_mode,
                    max_output_tokens=attempt.max_output_tokens,
                    temperature=attempt.temperature,
                    timeout_seconds=attempt.timeout_seconds,
                    schema_name=self.request.schema.value,
                    json_schema={}
                    if is_native
                    else answer_schema(self.request.schema, tools),
                    tools=tools if is_native else (),
                ),
                max_retries=0 if self.guard.is_probing else MAX_RETRIES,
            )

    def _store_answer(self, row: AttemptRow, found: Understood) -> Result:
        row.state = AttemptRow.State.VALID
        if self.request.schema is Schema.ACTIONS:
            unknown = self._settle_actions(row, found)
        else:
            names = unknown_tools(
                found.value, self.request.schema, registered_tools().keys()
            )
            unknown = [(name, nearest_tool(name)) for name in names]
        with transaction.atomic():
            self._end(row, unknown)
            self._keep(self._answer_name(row), found.value)
        return Valid(found.value)

    def _settle_actions(
        self, row: AttemptRow, found: Understood
    ) -> list[tuple[str, str | None]]:
        """Keep with a good answer which of its calls failed; return its unknown tools."""
        result = ParseResult.from_json(found.value)
        items = failure_items(result.failures)
        row.errors = redact_json([item.model_dump() for item in items])
        known = [tool.name for tool in self.request.tools]
        return [
            (clean_text(name), next(iter(get_close_matches(name, known, n=1)), None))
            for name in result.unknown_tools
        ]

    def _store_invalid(
        self, row: AttemptRow, found: Misunderstood, text: str
    ) -> Result:
        row.state = AttemptRow.State.INVALID
        row.error_type = found.error_type.value
        row.errors = redact_json([item.model_dump() for item in found.errors])
        with transaction.atomic():
            self._end(row)
        return Invalid(Feedback(clean_text(text), found.error_type, found.errors))

    def _store_failure(self, row: AttemptRow, error: ProviderError | None) -> Result:
        error_type = error.error_type if error else CallErrorType.PROVIDER_ERROR
        row.state = AttemptRow.State.CALL_FAILED
        row.error_type = error_type.value
        row.errors = redact_json([{"code": error_type.value, "message": str(error)}])
        with transaction.atomic():
            self._end(row)
        return CallFailed(error_type)

    def _write_off(self, row: AttemptRow) -> Result:
        """Spend the call of a worker that died: it may have been made, so it is not made again."""
        row.state = AttemptRow.State.CALL_FAILED
        row.error_type = CallErrorType.TIMEOUT.value
        row.errors = [{"code": "lost", "message": LOST}]
        with transaction.atomic():
            self._end(row)
        return CallFailed(CallErrorType.TIMEOUT)

    def _end(
        self, row: AttemptRow, unknown: list[tuple[str, str | None]] | None = None
    ) -> None:
        """Store the row and its event; the caller's transaction holds both and the fence."""
        # Progress: the count of starts begins anew with this one (C4).
        self.claim.renew(starts=1)
        row.occurred_at = clock.now()
        row.save()
        record_attempt(self.goal, row, unknown or [])
        log = logger.info if row.state == AttemptRow.State.VALID else logger.warning
        log(
            "attempt_ended",
            correlation_id=self.goal.correlation_id,
            node=row.node,
            cycle=row.cycle,
            attempt=row.attempt,
            max_attempts=RetryConfig.model_validate(self.goal.retry).max_attempts,
            intent=redact(self.goal.text_preview, LOGGED_INTENT_BYTES),
            state=row.state,
            error_type=row.error_type,
            error=row.errors[0]["message"] if row.state in FAILED_STATES else None,
            # A later attempt made good what an earlier one got wrong (S1-89).
            recovered=row.state == AttemptRow.State.VALID and row.attempt > 1,
        )

    def _recall(self, row: AttemptRow) -> Result:
        """The result of an attempt that an earlier claim finished."""
        if row.state == AttemptRow.State.VALID:
            value = working.get(
                self.goal.project_id, owner_of(self.goal), self._answer_name(row)
            )
            return Valid(value)
        if row.state == AttemptRow.State.CALL_FAILED:
            return CallFailed(CallErrorType(row.error_type or ""))
        errors = tuple(ValidationErrorItem.model_validate(item) for item in row.errors)
        return Invalid(
            Feedback(row.preview, ParseErrorType(row.error_type or ""), errors)
        )

    def _answer_name(self, row: AttemptRow) -> str:
        return f"answer:{row.cycle}:{row.node}"


def was_put_off(goal: Goal) -> bool:
    """Whether a breaker stood in the goal's way when it was last tried."""
    return (goal.execution_eval or {}).get("reason") == Outcome.CIRCUIT_OPEN


def owner_of(goal: Goal) -> str:
    """The name under which a goal keeps its values in the working store."""
    return f"goal:{goal.pk}"
