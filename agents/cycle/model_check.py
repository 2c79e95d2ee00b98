"""A language model as a checker: one call a check, within the goal's budget and breakers.

No retries and no feedback: an answer without a decision makes the check undecidable, and the
loop continues. Like every call, it has an attempt row.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max

from agents.breakers.store import Guard
from agents.cycle.attempt_rows import PREVIEW_BYTES, AttemptRows, call_model, note_reply
from agents.goals.claims import RENEW_SECONDS, GoalClaim
from agents.goals.events import CHECK_NODE, CHECK_SCHEMA, error_type_of, model_name, provider_name
from agents.goals.models import Attempt
from agents.goals.policies import budget_of, spent_by
from agents.goals.state import describe_results, spent_dimension
from agents.llm.provider import ProviderError
from agents.llm.transport import Reply
from diagnostics import clock
from diagnostics.redaction.redactor import redact, redact_json
from diagnostics.store.leases import kept_alive
from failsoft.completion import CheckDecision, resolve_completion_decision
from failsoft.completion.specification import CheckSpec
from failsoft.events import CallErrorType
from failsoft.json_values import clean_text
from failsoft.parsing.makers import CUT, FinishClass, ending_of
from failsoft.retry.answer_schemas import closed_object
from failsoft.retry.engine import PlannedAttempt
from failsoft.retry.policy import OutputMode
from failsoft.retry.prompts import Prompt, fenced
from plans.checks.checking import (
    AskModel,
    CheckedWork,
    CheckerFailedError,
    CheckerOutput,
    NotAskedError,
)
from plans.runs import working_store

MAX_GOAL_CHARACTERS = 8_000
MAX_RESULTS_CHARACTERS = 12_000
SYSTEM = "You check whether a task is complete. You answer with one JSON object, and nothing else."


def check_prompt(
    goal: str,
    iteration: int,
    results: Iterable[Mapping[str, Any]],
    instructions: str | None,
    check_id: str,
) -> Prompt:
    lines = "\n".join(f"- {line}" for line in describe_results(iteration, results))
    blocks = [
        f"Task:\n{fenced(goal, MAX_GOAL_CHARACTERS)}",
        f"What was done:\n{lines[-MAX_RESULTS_CHARACTERS:]}" if lines else "",
        f"What to look at:\n{instructions}" if instructions else "",
        "Answer with one JSON object with these keys: "
        '"decision", which is either "complete" or "incomplete"; '
        f'"check_id", which is exactly {json.dumps(check_id)}; '
        '"reasons", a list of short texts; '
        '"fingerprints", a list of short fixed names, one for each thing that is missing. '
        "Say complete only when nothing is missing.",
    ]
    return Prompt(SYSTEM, "\n\n".join(block for block in blocks if block))


def decision_schema(check_id: str) -> dict[str, Any]:
    """Return the JSON Schema of a decision, for providers that enforce one."""
    texts = {"type": "array", "items": {"type": "string"}, "maxItems": 10}
    decisions = {"type": "string", "enum": ["complete", "incomplete"]}
    own_id = {"type": "string", "enum": [check_id]}
    keys = {"decision": decisions, "check_id": own_id, "reasons": texts, "fingerprints": texts}
    return closed_object(keys)


# With these finish reasons the text is incomplete: it never counts as "complete".
CUT_OR_BLOCKED = CUT | {FinishClass.BLOCK}
LOST = [{"code": "lost", "message": "The worker stopped during this call."}]


class OutOfBudgetError(NotAskedError):
    """the goal's budget of this name is used up"""


class PutOffError(NotAskedError):
    """a circuit breaker lets no call through for now"""

    def __init__(self, wait_seconds: float) -> None:
        """`wait_seconds`: until the breaker may admit a call."""
        super().__init__(self.__doc__)
        self.wait_seconds = wait_seconds


def ask_model(claim: GoalClaim) -> AskModel:
    """Return the function that checks of kind `model` call: it asks the goal's model."""

    def ask(spec: CheckSpec, subject: CheckedWork, check_id: str) -> CheckerOutput:
        text = working_store.get(claim.goal, "goal")["text"]
        results = [row for row in subject.results if isinstance(row, dict)]
        prompt = check_prompt(text, subject.iteration, results, spec.instructions, check_id)
        return _CheckCall(claim, check_id).ask(prompt)

    return ask


@dataclass(slots=True)
class _CheckCall:
    claim: GoalClaim
    check_id: str

    def ask(self, prompt: Prompt) -> CheckerOutput:
        """Call once; CheckerFailedError without an answer, NotAskedError if none may be made."""
        goal = self.claim.goal
        spent = spent_dimension(budget_of(goal), spent_by(goal))
        if spent:
            raise OutOfBudgetError(spent)
        names = provider_name(goal) or "", model_name(goal) or ""
        guard = Guard.of(goal.project_id, *names, CHECK_NODE)
        if denied := guard.admit_call():
            raise PutOffError(denied.retry_after_seconds or 0)
        attempt, row = self._begin(prompt)
        started = time.monotonic()
        answer_format = {"schema_name": CHECK_SCHEMA, "json_schema": decision_schema(self.check_id)}
        with kept_alive(RENEW_SECONDS, guard.renew):
            reply = call_model(goal.planner_model, attempt, prompt, guard, **answer_format)
        guard.settle_call(reply)
        note_reply(row, reply, started)
        return self._settle(row, reply)

    def _begin(self, prompt: Prompt) -> tuple[PlannedAttempt, Attempt]:
        """Store the attempt before its call; count one whose worker died as failed."""
        model = self.claim.goal.planner_model
        rows = AttemptRows(self.claim, CHECK_NODE)
        has_schema = OutputMode.SCHEMA in model.supported_output_modes
        with transaction.atomic():
            rows.stored().filter(state=Attempt.State.CALLING).update(
                state=Attempt.State.CALL_FAILED,
                error_type=CallErrorType.TIMEOUT.value,
                errors=LOST,
                occurred_at=clock.now(),
            )
            number = (rows.stored().aggregate(last=Max("attempt"))["last"] or 0) + 1
            attempt = PlannedAttempt(
                number=number,
                total=number,
                feedback=None,
                simplified=False,
                output_mode=OutputMode.SCHEMA if has_schema else OutputMode.TEXT,
                max_output_tokens=model.max_output_tokens,
                temperature=model.temperature,
                timeout_seconds=model.attempt_timeout_seconds,
            )
            return attempt, rows.begin(attempt, prompt)

    def _settle(self, row: Attempt, reply: Reply) -> CheckerOutput:
        answer = reply.answer
        if isinstance(answer, ProviderError):
            kind = answer.error_type.value
            self._end(row, Attempt.State.CALL_FAILED, kind, [_item(kind, str(answer))])
            raise CheckerFailedError(f"the model did not answer ({kind})")
        row.preview = redact(clean_text(answer.text), PREVIEW_BYTES)
        is_cut = ending_of(answer.finish_reason) in CUT_OR_BLOCKED
        # The rules of every other check: the same answer has the same verdict.
        verdict = resolve_completion_decision(
            None, answer.text, self.check_id, output_is_cut=is_cut
        )
        if verdict.decision is CheckDecision.UNDECIDABLE:
            cause = str(verdict.cause)
            items = [_item(cause, verdict.reason or cause)]
            self._end(row, Attempt.State.INVALID, error_type_of(cause).value, items)
        else:
            self._end(row, Attempt.State.VALID, None, [])
        return CheckerOutput(answer.text, is_cut)

    def _end(self, row: Attempt, state: str, error_type: str | None, items: list[Any]) -> None:
        row.state, row.error_type = state, error_type
        row.errors = redact_json(items)
        row.occurred_at = clock.now()
        with transaction.atomic():
            self.claim.renew()
            row.save()


def _item(code: str, message: str) -> dict[str, str]:
    return {"path": "", "code": code, "message": message}
