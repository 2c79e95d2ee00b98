"""Attempt rows: created before the call, completed together with their event after it.

Every write is fenced by the claim. A row that an earlier claim ended keeps its result.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import structlog
from django.db import models, transaction

from agents.breakers.store import Guard
from agents.fix_patterns.store import count_first_answer
from agents.goals.claims import GoalClaim
from agents.goals.events import model_name, provider_name, record_attempt
from agents.goals.models import Attempt, Goal
from agents.goals.state import AttemptState
from agents.llm.models import LanguageModel
from agents.llm.provider import ANSWERERS, Completion, CompletionRequest, ProviderError
from agents.llm.registry import open_provider
from agents.llm.transport import MAX_RETRIES, Reply, call
from diagnostics import clock
from diagnostics.redaction.redactor import redact, redact_json, redact_name
from failsoft.events import CallErrorType, ParseErrorType, ValidationErrorItem
from failsoft.json_values import JSON, clean_text
from failsoft.retry.engine import CallFailed, Feedback, Invalid, PlannedAttempt, Result, Valid
from failsoft.retry.policy import RetryConfig
from failsoft.retry.prompts import Prompt
from plans.runs import working_store

logger = structlog.get_logger(__name__)

FEEDBACK_BYTES = 8 * 1024
PREVIEW_BYTES = 8 * 1024
LOGGED_INTENT_BYTES = 200
LONGEST_NAME = 200
FAILED_STATES = (Attempt.State.INVALID, Attempt.State.CALL_FAILED)
LOST = "The worker stopped during this call; the answer is unknown."
UnknownTools = list[tuple[str, str | None]]


def call_model(
    model: LanguageModel, attempt: PlannedAttempt, prompt: Prompt, guard: Guard, **answer: Any
) -> Reply:
    """Call a model once; no transport retries while its breaker is probing."""
    try:
        provider = open_provider(model.provider)
    except ProviderError as error:
        return Reply(error, 0, was_sent=False)
    request = CompletionRequest(
        model=model.name,
        system=prompt.system,
        user=prompt.user,
        output_mode=attempt.output_mode,
        max_output_tokens=attempt.max_output_tokens,
        temperature=attempt.temperature,
        timeout_seconds=attempt.timeout_seconds,
        **answer,
    )
    return call(provider, request, max_retries=0 if guard.is_probing else MAX_RETRIES)


def note_reply(row: Attempt, reply: Reply, started: float) -> None:
    """Copy latency, usage and finish reason to the row; `started` is a time of `time.monotonic`."""
    row.latency_ms = round((time.monotonic() - started) * 1000)
    row.transport_retries += reply.retries
    answer = reply.answer
    if isinstance(answer, Completion):
        row.finish_reason = clean_text(answer.finish_reason or "")[:64] or None
        row.input_tokens = answer.input_tokens
        row.output_tokens = answer.output_tokens
        row.reasoning_tokens = answer.reasoning_tokens
        for name in ANSWERERS:
            sent = (getattr(answer, name) or "").strip()
            setattr(row, name, redact_name(sent, LONGEST_NAME) if sent else None)


@dataclass(frozen=True, slots=True)
class AttemptRows:
    """The attempt rows of one node in the goal's current cycle."""

    claim: GoalClaim
    node: str

    @property
    def goal(self) -> Goal:
        return self.claim.goal

    def stored(self) -> models.QuerySet[Attempt]:
        return self.goal.attempts.filter(cycle=self.goal.cycle, node=self.node)

    def begin(
        self, attempt: PlannedAttempt, prompt: Prompt, withheld: Sequence[int] = ()
    ) -> Attempt:
        """Store the attempt before its call, so that a crash cannot spend the budget twice.

        `withheld` are the fix patterns left out of this prompt to measure their effect.
        """
        takes_temperature = self.goal.planner_model.provider.takes_temperature
        with transaction.atomic():
            self.claim.renew()
            row = Attempt(
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
                # None where the provider takes none.
                temperature=attempt.temperature if takes_temperature else None,
                timeout_seconds=attempt.timeout_seconds,
                feedback=redact(clean_text(prompt.feedback), FEEDBACK_BYTES),
                told_patterns=list(prompt.told_patterns),
                withheld_patterns=list(withheld) if attempt.number == 1 else [],
                called_at=clock.now(),
            )
            # Those of the calls after which the goal was postponed.
            name = self.retries_name(row)
            row.transport_retries = working_store.get_named(self.goal, [name]).get(name, 0)
            row.save()
        return row

    def end(self, row: Attempt, unknown_tools: UnknownTools | None = None) -> None:
        """Store the row and its event; the caller's transaction holds both and the fence."""
        # There was progress: reset the count of starts.
        self.claim.renew(starts=1)
        row.occurred_at = clock.now()
        row.save()
        record_attempt(self.goal, row, unknown_tools or [])
        count_first_answer(row)
        log = logger.info if row.state == Attempt.State.VALID else logger.warning
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
            # An earlier attempt was invalid.
            recovered=row.state == Attempt.State.VALID and row.attempt > 1,
        )

    def write_off(self, row: Attempt) -> Result:
        """Count the call of a worker that died as spent: it may have been made."""
        lost: JSON = {"code": "lost", "message": LOST}
        self.fail(row, Attempt.State.CALL_FAILED, CallErrorType.TIMEOUT, [lost])
        return CallFailed(CallErrorType.TIMEOUT)

    def fail(
        self,
        row: Attempt,
        state: AttemptState,
        error_type: StrEnum,
        items: JSON,
        unknown_tools: UnknownTools | None = None,
    ) -> None:
        row.state, row.error_type, row.errors = state, error_type.value, redact_json(items)
        with transaction.atomic():
            self.end(row, unknown_tools)

    def recall(self, row: Attempt) -> Result:
        if row.state == Attempt.State.VALID:
            value = working_store.get(self.goal, self.answer_name(row))
            return Valid(value)
        if row.state == Attempt.State.CALL_FAILED:
            return CallFailed(CallErrorType(row.error_type or ""))
        errors = tuple(ValidationErrorItem.model_validate(item) for item in row.errors)
        return Invalid(Feedback(row.preview, ParseErrorType(row.error_type or ""), errors))

    def answer_name(self, row: Attempt) -> str:
        return f"answer:{row.cycle}:{row.node}"

    def retries_name(self, row: Attempt) -> str:
        """Return the name of the transport retries so far of a postponed attempt."""
        return f"retries:{row.cycle}:{row.node}:{row.attempt}"
