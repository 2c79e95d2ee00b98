"""Bodies of requests about goals, and what is said when one is refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, PlainSerializer, WithJsonSchema
from rest_framework import status
from rest_framework.request import Request

from agents.goals.models import Goal
from agents.goals.requests import NO_OBJECT, OrderError, StateConflictError
from agents.goals.state import Phase, PlanningOutcome, Status
from diagnostics.accounts.authentication import key_of
from diagnostics.redaction.redactor import redact
from diagnostics.rest.bodies import InvalidBodyError
from diagnostics.rest.resources import Json, Resource
from failsoft.plans.violations import Violation
from plans.bodies import read_json_body

# Far above what a goal may have: who sends too long a text is told the field.
MAX_BODY_BYTES = 4 * 1024 * 1024


class ConflictError(InvalidBodyError):
    """409: what is asked does not fit what is there."""

    status_code = status.HTTP_409_CONFLICT


def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; 400 with line and column for what is no JSON."""
    body, _ = read_json_body(request._request, MAX_BODY_BYTES)
    if not isinstance(body, dict):
        raise InvalidBodyError([asdict(NO_OBJECT)], NO_OBJECT.code)
    return body


@contextmanager
def refusing() -> Iterator[None]:
    """Turn what the app says about a request into an answer."""
    try:
        yield
    except OrderError as error:
        errors = [{**item.as_dict(), "message": redact(item.message)} for item in error.errors]
        kind = ConflictError if errors[0]["code"] == "taken" else InvalidBodyError
        raise kind(errors, errors[0]["code"]) from error
    except StateConflictError as error:
        code = type(error).__name__.removesuffix("Error")
        raise ConflictError([{"path": "", "code": code, "message": str(error)}], code) from error


def actor_of(request: Request) -> str:
    """Name the key of an authenticated request, never its secret half."""
    key = key_of(request)
    return f"key {key.name} ({key.key_id})"


class RefusedGoal(Resource):
    """Why a request was refused, field by field."""

    detail: str
    code: str
    errors: list[Violation]


# Commands write records too: as text, like every answer.
Moment = Annotated[
    datetime,
    PlainSerializer(datetime.isoformat),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Identity = Annotated[
    UUID, PlainSerializer(str), WithJsonSchema({"type": "string", "format": "uuid"})
]


class QueuedGoal(Resource):
    """A goal that was accepted."""

    id: Identity
    correlation_id: str
    # Without a name: there are others of this one.
    status: Annotated[Status, WithJsonSchema({"type": "string", "enum": [*Status]})]
    url: str


class GoalSummary(QueuedGoal):
    """One goal of a list; its text is redacted and cut."""

    reference: Annotated[str, Field(validation_alias="correlation_id")]
    goal: Annotated[str, Field(validation_alias="text_preview")]
    mode: Goal.Mode
    runner: str
    outcome: PlanningOutcome | None
    source: Annotated[Literal["planner", "stub", "given"], Field(validation_alias="plan_source")]
    provider: str | None
    model: str | None
    cycle: int
    user_text: str
    help: list[str]
    created_at: Moment
    started_at: Moment | None
    ended_at: Moment | None


class ActionsResource(Resource):
    """What came of a goal's actions; in every other mode these are absent.

    `parse_failed` counts entries; `kept` are those an undo left, because they were changed again.
    """

    toolset: str = ""
    applied: list[Json] = []
    parse_failures: list[Json] = []
    execution_failures: list[Json] = []
    parse_failed: int = 0
    execution_failed: int = 0
    summary: str = ""
    undone_at: Moment | None = None
    kept: list[str] = []


class GoalResource(GoalSummary, ActionsResource):
    """Everything that is known of a goal, redacted."""

    pdca_phase: Phase
    last_validation_error: Json | None
    execution_eval: Json | None
    next_user_question: str | None
    state: Annotated[Json, Field(description="the state contract under one key")]
    constraints: list[Json]
    tools: list[str] | None
    retry: Json
    budget: Json
    max_iterations: int
    attempts: list[Json]
    events: list[Json]
    plan: Json | None
    results: list[Json]
    runs: list[Json]
    completion_check: Json | None
    decisions: list[Json]
