"""Submit, answer and cancel goals; row and message in one transaction."""

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
    read_request,
)
from agents.goals.state import PlanningOutcome, Status, TaskState, describe_answer, respond
from agents.llm.models import LanguageModel
from diagnostics import clock
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import redact, redact_json, redact_name
from diagnostics.redaction.rules import texts_of
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
# Where plans come from; a given one was submitted with its goal.
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
) -> Goal:
    """Check and queue a goal; `body` is that of POST /api/v1/goals (docs/http-api.md).

    Raises RequestRefusedError naming the fields, IdempotencyConflictError for a key that was
    used for another body.
    """
    with texts_of(project_id):
        request = read_request(GoalRequest, body)
        digest = hashlib.sha256(json.dumps(body, sort_keys=True, default=str).encode()).digest()
        if earlier := _find_earlier(project_id, idempotency_key, digest):
            return earlier
        goal = _make_goal(project_id, request)
        goal.request_hash = digest
        if idempotency_key is not None:
            goal.idempotency_digest = digest_key(project_id, idempotency_key)
        goal.source = source and redact_name(source)
        environment = settings.FAILSOFT_ENVIRONMENT
        goal.environment = redact_name(environment) if environment else None
        try:
            with transaction.atomic():
                goal.save(force_insert=True)
                working_store.put(goal, "goal", _raw_request(request))
                if request.plan is not None:
                    working_store.put(goal, "plan", request.plan)
                enqueue_goal(goal)
        except IntegrityError:
            # A concurrent request came first: with this key, or with this correlation id.
            if earlier := _find_earlier(project_id, idempotency_key, digest):
                return earlier
            message = f"another goal has the correlation id {request.correlation_id}"
            raise _refuse("/correlation_id", "taken", message) from None
        return goal


def digest_key(project_id: int, key: str) -> str:
    """Return the digest stored for an Idempotency-Key: 64 hexadecimal digits (SHA-256)."""
    return hashlib.sha256(f"{project_id}:{key}".encode()).hexdigest()


def answer_goal(goal: Goal, body: Mapping[str, object], cycle: int | None = None) -> None:
    """Store the answer to a waiting goal, or to its question of a cycle, and requeue it.

    Raises RequestRefusedError naming the fields, NotWaitingError if it waits for none, or for
    the answer to a later question.
    """
    request = read_request(AnswerRequest, body)
    now = clock.now()
    with transaction.atomic():
        row = Goal.objects.select_for_update().get(pk=goal.pk)
        if row.status != Goal.Status.WAITING_USER or cycle not in (None, row.cycle):
            raise NotWaitingError(NotWaitingError.__doc__)
        exchange = describe_answer(row.next_user_question or "", clean_text(request.describe()))
        answers = working_store.get_all(row, "answers").get("answers", [])
        working_store.put(row, "answers", [*answers, exchange])
        # The time budget excludes what is spent waiting for the user.
        since = (row.execution_eval or {}).get("since")
        pause = (now - datetime.fromisoformat(since)).total_seconds() if since else 0.0
        waited = float(row.budget.get(WAITED, 0)) + pause
        Goal.objects.filter(pk=row.pk).update(
            status=Goal.Status.QUEUED,
            next_user_question=None,
            execution_eval=None,
            user_text="",
            # The next plan is a new cycle, with attempts of its own.
            cycle=row.cycle + 1,
            budget={**row.budget, WAITED: waited, ANSWERED_AT: now.isoformat()},
            lease_until=DatabaseNow() + MESSAGE_LEASE,
        )
        enqueue_goal(row)


def cancel_goal(goal: Goal) -> None:
    """Cancel a goal: at once if no worker has it, otherwise at its next step.

    Raises AlreadyEndedError if it has ended. Cancelling twice is allowed.
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
            # It ends without a worker.
            state = TaskState(status=Status.CANCELLED)
            message = respond(state, PlanningOutcome.CANCELLED, row.correlation_id)
            working_store.expire(row)
            changes |= {
                "status": Goal.Status.CANCELLED,
                "outcome": Goal.Outcome.CANCELLED,
                "next_user_question": None,
                "lease_until": None,
                "user_text": message.text,
                "help": list(message.help),
                "ended_at": DatabaseNow(),
            }
        Goal.objects.filter(pk=row.pk).update(**changes)
        if row.current_run_id is not None:
            cancel_run(row.project_id, row.current_run_id)


def enqueue_goal(goal: Goal) -> None:
    enqueue(RUN_TASK, {"goal_id": str(goal.pk)}, QUEUE, goal.project_id)


def _find_earlier(project_id: int, key: str | None, digest: bytes) -> Goal | None:
    if key is None:
        return None
    if not 0 < len(key) <= MAX_KEY_CHARACTERS:
        message = f"Idempotency-Key has 1 to {MAX_KEY_CHARACTERS} characters"
        raise _refuse("", "idempotency_key", message)
    goals = Goal.objects.filter(idempotency_digest=digest_key(project_id, key))
    earlier = goals.filter(project_id=project_id).first()
    if earlier is not None and bytes(earlier.request_hash or b"") != digest:
        raise IdempotencyConflictError(IdempotencyConflictError.__doc__)
    return earlier


def _make_goal(project_id: int, request: GoalRequest) -> Goal:
    language_model = _choose_model(project_id, request) if request.asks_model else None
    _check_tools(project_id, request)
    _check_plan(request)
    _check_checker(request)
    now = clock.now()
    identity = uuid7(now, secrets.token_bytes(10))
    return Goal(
        id=identity,
        project_id=project_id,
        correlation_id=redact_name(request.correlation_id or str(identity)),
        mode=request.mode,
        text_preview=redact(clean_text(request.goal), PREVIEW_BYTES),
        max_iterations=request.max_iterations,
        language_model=language_model,
        runner=request.runner,
        tools=request.tools,
        toolset=request.toolset,
        plan_source=PLANNER if request.plan is None else GIVEN,
        # Its arguments and instructions are free text.
        completion_check=redact_json(request.check_as_sent()),
        constraints=redact_json([item.model_dump() for item in request.constraints]),
        retry=RetryConfig.from_layers(settings.FAILSOFT_PLAN_RETRY, request.retry).model_dump(),
        budget=request.budget.model_dump(),
        lease_until=now + MESSAGE_LEASE,
        created_at=now,
    )


def _raw_request(request: GoalRequest) -> dict[str, Any]:
    return {
        "text": clean_text(request.goal),
        "constraints": [
            {"text": clean_text(item.text), "optional": item.optional}
            for item in request.constraints
        ],
        "completion_check": request.check_as_sent(),
    }


def _choose_model(project_id: int, request: GoalRequest) -> LanguageModel:
    enabled = LanguageModel.objects.filter(
        project_id=project_id, enabled=True, provider__enabled=True
    ).select_related("provider")
    provider = request.provider
    if provider is not None and not enabled.filter(provider__name=provider).exists():
        raise _refuse("/provider", "unknown_provider", "no enabled provider has this name")
    names = {"provider__name": provider, "name": request.model}
    conditions: dict[str, Any] = {key: name for key, name in names.items() if name is not None}
    model = (
        enabled.filter(**conditions or {"is_default": True}).order_by("-is_default", "pk").first()
    )
    if model is None and not conditions:
        raise _refuse("/model", "no_default_model", "no default model is set up in this project")
    if model is None:
        raise _refuse("/model", "unknown_model", "no enabled model has this name")
    return model


def _check_tools(project_id: int, request: GoalRequest) -> None:
    offered = {tool.name for tool in offered_tools(project_id)}
    errors = []
    for index, name in enumerate(request.tools or ()):
        if name not in offered:
            nearest = nearest_tool(name)
            hint = f"; the nearest is {nearest}" if nearest in offered else ""
            message = f"no tool of this name is offered to planners{hint}"
            errors.append(Violation(f"/tools/{index}", "unknown_tool", message))
    if errors:
        raise RequestRefusedError(errors)


def _check_plan(request: GoalRequest) -> None:
    violations = validate_payload(request.plan) if request.plan is not None else []
    errors = [
        Violation(f"/plan{item.path}", item.code, redact(item.message)) for item in violations
    ]
    if errors:
        raise RequestRefusedError(errors)


def _check_checker(request: GoalRequest) -> None:
    check = request.completion_check
    if check is None:
        return
    if check.tool is not None and find_tool(check.tool) is None:
        message = "no tool of this name is registered"
        raise _refuse("/completion_check/tool", "unknown_tool", message)
    if check.command is not None and check.command not in command_names():
        allowed = ", ".join(command_names()) or "none"
        message = f"FAILSOFT_CHECK_COMMANDS allows: {allowed}"
        raise _refuse("/completion_check/command", "unknown_command", message)


def _refuse(path: str, code: str, message: str) -> RequestRefusedError:
    return RequestRefusedError([Violation(path, code, message)])
