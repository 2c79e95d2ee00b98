"""What people ask of goals: submit, answer, cancel; row and message in one transaction."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from agents.goals.models import Goal
from agents.goals.policies import ANSWERED_AT, WAITED
from agents.goals.requests import (
    AnswerRequest,
    GoalRequest,
    RequestRefusedError,
    StateConflictError,
    read_order,
)
from agents.goals.responses import respond
from agents.goals.state import PlanningOutcome, Status, TaskState, describe_answer
from agents.llm.models import LanguageModel
from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact, redact_json, redact_name
from diagnostics.store.outbox import enqueue
from failsoft.identifiers import uuid7
from failsoft.json_values import clean_text
from failsoft.plans.validation import validate_payload
from failsoft.plans.violations import Violation
from failsoft.retry.policy import RetryConfig
from plans.checks.commands import command_names
from plans.runs import working_store
from plans.runs.submission import cancel_run
from plans.tools.registry import find_tool, nearest_tool, offered_tools

RUN_TASK = "agents.tasks.run_goal"
# Where plans come from; the second came with its goal.
PLANNER, GIVEN = "planner", "given"
QUEUE = "plan"
# How long a queued goal waits for its message before it is sent again.
MESSAGE_LEASE = timedelta(seconds=60)
PREVIEW_BYTES = 4 * 1024
MAX_KEY_CHARACTERS = 200


class IdempotencyConflictError(StateConflictError):
    """this Idempotency-Key was used for another request"""


class NotWaitingError(StateConflictError):
    """the goal waits for no answer"""


class AlreadyEndedError(StateConflictError):
    """the goal has already ended"""


def submit_goal(
    project_id: int,
    body: Mapping[str, object],
    idempotency_key: str | None = None,
    *,
    source: str | None = None,
    environment: str | None = None,
) -> Goal:
    """Check and queue a goal; `body` is what docs/http-api.md documents for POST /api/v1/goals.

    Raises RequestRefusedError naming the fields, IdempotencyConflictError for a key that was
    used for another body.
    """
    order = read_order(GoalRequest, body)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True, default=str).encode()).digest()
    earlier = _find_earlier(project_id, idempotency_key, digest)
    if earlier is not None:
        return earlier
    goal = _make_goal(project_id, order)
    goal.request_hash = digest
    if idempotency_key is not None:
        goal.idempotency_digest = digest_key(project_id, idempotency_key)
    goal.source = source and redact_name(source)
    environment = environment or settings.FAILSOFT_ENVIRONMENT
    goal.environment = redact_name(environment) if environment else None
    try:
        with transaction.atomic():
            goal.save(force_insert=True)
            working_store.put(goal, "goal", _raw_order(order))
            if order.plan is not None:
                working_store.put(goal, "plan", order.plan)
            enqueue_goal(goal)
    except IntegrityError:
        return _after_race(project_id, order, idempotency_key, digest)
    return goal


def digest_key(project_id: int, key: str) -> str:
    """Return what is kept of an Idempotency-Key: 64 hexadecimal digits (SHA-256)."""
    return hashlib.sha256(f"{project_id}:{key}".encode()).hexdigest()


def answer_goal(goal: Goal, body: Mapping[str, object]) -> None:
    """Hand an answer to a waiting goal, which goes on with it.

    Raises RequestRefusedError naming the fields, NotWaitingError when nobody waits.
    """
    order = read_order(AnswerRequest, body)
    now = clock.now()
    with transaction.atomic():
        row = Goal.objects.select_for_update().get(pk=goal.pk)
        if row.status != Goal.Status.WAITING_USER:
            raise NotWaitingError(NotWaitingError.__doc__)
        given = describe_answer(row.next_user_question or "", clean_text(order.describe()))
        answers = working_store.get_all(row, "answers").get("answers", [])
        working_store.put(row, "answers", [*answers, given])
        Goal.objects.filter(pk=row.pk).update(
            status=Goal.Status.QUEUED,
            next_user_question=None,
            execution_eval=None,
            user_text="",
            # The next plan is a new cycle, with attempts of its own.
            cycle=row.cycle + 1,
            budget={**row.budget, WAITED: _waited(row, now), ANSWERED_AT: now.isoformat()},
            lease_until=DatabaseNow() + MESSAGE_LEASE,
        )
        enqueue_goal(row)


def cancel_goal(goal: Goal) -> None:
    """Ask a goal to end: at once when nobody works on it, otherwise at the next chance.

    Raises AlreadyEndedError when there is nothing to end; asking twice is fine.
    """
    ended = [Goal.Status.COMPLETED, Goal.Status.FAILED]
    with transaction.atomic():
        row = Goal.objects.select_for_update().get(pk=goal.pk)
        if row.status in ended:
            raise AlreadyEndedError(AlreadyEndedError.__doc__)
        if row.status == Goal.Status.CANCELLED:
            return
        changes: dict[str, object] = {"cancel_requested_at": DatabaseNow()}
        if row.status in (Goal.Status.QUEUED, Goal.Status.WAITING_USER):
            changes |= _end_cancelled(row)
        Goal.objects.filter(pk=row.pk).update(**changes)
        if row.current_run_id is not None:
            cancel_run(row.project_id, row.current_run_id)


def enqueue_goal(goal: Goal) -> None:
    """Write the message that makes a worker move the goal."""
    enqueue(RUN_TASK, {"goal_id": str(goal.pk)}, QUEUE, goal.project_id)


def _find_earlier(project_id: int, key: str | None, digest: bytes) -> Goal | None:
    if key is None:
        return None
    if not 0 < len(key) <= MAX_KEY_CHARACTERS:
        message = f"Idempotency-Key has 1 to {MAX_KEY_CHARACTERS} characters"
        raise RequestRefusedError([Violation("", "idempotency_key", message)])
    named = Goal.objects.filter(idempotency_digest=digest_key(project_id, key))
    earlier = named.filter(project_id=project_id).first()
    if earlier is not None and bytes(earlier.request_hash or b"") != digest:
        raise IdempotencyConflictError(IdempotencyConflictError.__doc__)
    return earlier


def _after_race(project_id: int, order: GoalRequest, key: str | None, digest: bytes) -> Goal:
    """Two requests at once, or a correlation id that is taken: the row that is there decides."""
    earlier = _find_earlier(project_id, key, digest)
    if earlier is not None:
        return earlier
    message = f"another goal has the correlation id {order.correlation_id}"
    raise RequestRefusedError([Violation("/correlation_id", "taken", message)])


def _make_goal(project_id: int, order: GoalRequest) -> Goal:
    language_model = _choose_model(project_id, order) if order.asks_model else None
    _check_tools(project_id, order)
    _check_plan(order)
    _check_checker(order)
    now = clock.now()
    identity = uuid7(now, secrets.token_bytes(10))
    return Goal(
        id=identity,
        project_id=project_id,
        correlation_id=redact_name(order.correlation_id or str(identity)),
        mode=order.mode,
        text_preview=redact(clean_text(order.goal), PREVIEW_BYTES),
        max_iterations=order.max_iterations,
        language_model=language_model,
        runner=order.runner,
        tools=order.tools,
        toolset=order.toolset,
        plan_source=PLANNER if order.plan is None else GIVEN,
        # Its arguments and instructions are somebody's words.
        completion_check=redact_json(order.check_as_sent()),
        constraints=redact_json([item.model_dump() for item in order.constraints]),
        retry=RetryConfig.from_layers(settings.FAILSOFT_PLAN_RETRY, order.retry).model_dump(),
        budget=order.budget.model_dump(),
        lease_until=now + MESSAGE_LEASE,
        created_at=now,
    )


def _raw_order(order: GoalRequest) -> dict[str, Any]:
    """What planning needs as it was written, beside the redacted row."""
    return {
        "text": clean_text(order.goal),
        "constraints": [
            {"text": clean_text(item.text), "optional": item.optional} for item in order.constraints
        ],
        "completion_check": order.check_as_sent(),
    }


def _choose_model(project_id: int, order: GoalRequest) -> LanguageModel:
    enabled = LanguageModel.objects.filter(
        project_id=project_id, enabled=True, provider__enabled=True
    ).select_related("provider")
    if order.provider is not None and not enabled.filter(provider__name=order.provider).exists():
        raise _refuse("/provider", "unknown_provider", "no enabled provider has this name")
    named = {"provider__name": order.provider, "name": order.model}
    wanted: dict[str, Any] = {key: name for key, name in named.items() if name is not None}
    model = enabled.filter(**wanted or {"is_default": True}).order_by("-is_default", "pk").first()
    if model is None and not wanted:
        raise _refuse("/model", "no_default_model", "no default model is set up in this project")
    if model is None:
        raise _refuse("/model", "unknown_model", "no enabled model has this name")
    return model


def _check_tools(project_id: int, order: GoalRequest) -> None:
    offered = {tool.name for tool in offered_tools(project_id)}
    errors = []
    for index, name in enumerate(order.tools or ()):
        if name not in offered:
            nearest = nearest_tool(name)
            hint = f"; the nearest is {nearest}" if nearest in offered else ""
            message = f"no tool of this name is offered to planners{hint}"
            errors.append(Violation(f"/tools/{index}", "unknown_tool", message))
    if errors:
        raise RequestRefusedError(errors)


def _check_plan(order: GoalRequest) -> None:
    violations = validate_payload(order.plan) if order.plan is not None else []
    errors = [
        Violation(f"/plan{item.path}", item.code, redact(item.message)) for item in violations
    ]
    if errors:
        raise RequestRefusedError(errors)


def _check_checker(order: GoalRequest) -> None:
    """Whether there is the tool or command that is to check."""
    check = order.completion_check
    if check is None:
        return
    if check.tool is not None and find_tool(check.tool) is None:
        message = "no tool of this name is registered"
        raise _refuse("/completion_check/tool", "unknown_tool", message)
    if check.command is not None and check.command not in command_names():
        known = ", ".join(command_names()) or "none"
        message = f"FAILSOFT_CHECK_COMMANDS allows: {known}"
        raise _refuse("/completion_check/command", "unknown_command", message)


def _refuse(path: str, code: str, message: str) -> RequestRefusedError:
    return RequestRefusedError([Violation(path, code, message)])


def _waited(row: Goal, now: datetime) -> float:
    """Seconds spent waiting for the user so far: no part of the time budget."""
    since = (row.execution_eval or {}).get("since")
    here = (now - datetime.fromisoformat(since)).total_seconds() if since else 0.0
    return float(row.budget.get(WAITED, 0)) + here


def _end_cancelled(row: Goal) -> dict[str, object]:
    """The columns of a goal that nobody works on and that ends here."""
    state = TaskState(status=Status.CANCELLED)
    message = respond(state, PlanningOutcome.CANCELLED, row.correlation_id)
    working_store.expire(row)
    return {
        "status": Goal.Status.CANCELLED,
        "outcome": Goal.Outcome.CANCELLED,
        "next_user_question": None,
        "lease_until": None,
        "user_text": message.text,
        "help": list(message.help),
        "ended_at": DatabaseNow(),
    }
