"""Bodies of requests about goals, and what is said when one is refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rest_framework import serializers, status
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from agents.goals.models import Goal
from agents.goals.requests import OrderError, StateConflictError
from diagnostics.accounts.models import ApiKey
from diagnostics.redaction.redactor import redact
from diagnostics.rest.openapi import FaultSerializer
from diagnostics.store.choices import choices_of
from plans.bodies import read_json_body

# Far above what a goal may have: who sends too long a text is told the field.
MAX_BODY_BYTES = 4 * 1024 * 1024


class RefusedError(APIException):
    """422: the fields that are refused, each with a pointer."""

    status_code: int = status.HTTP_422_UNPROCESSABLE_ENTITY

    def __init__(self, code: str, errors: list[dict[str, str]]) -> None:
        """Say it in one sentence and list every field."""
        said = "; ".join(f"{error['path'] or 'body'}: {error['message']}" for error in errors[:5])
        super().__init__(said, code)
        detail: Any = {"detail": said, "code": code, "errors": errors}
        self.detail = detail


class ConflictError(RefusedError):
    """409: what is asked does not fit what is there."""

    status_code = status.HTTP_409_CONFLICT


def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; 400 with line and column for what is no JSON."""
    body, _ = read_json_body(request._request, MAX_BODY_BYTES)
    if not isinstance(body, dict):
        message = "expected a JSON object"
        raise RefusedError("object_type", [{"path": "", "code": "object_type", "message": message}])
    return body


@contextmanager
def refusing() -> Iterator[None]:
    """Turn what the app says about a request into an answer."""
    try:
        yield
    except OrderError as error:
        errors = [{**item.as_dict(), "message": redact(item.message)} for item in error.errors]
        kind = ConflictError if errors[0]["code"] == "taken" else RefusedError
        raise kind(errors[0]["code"], errors) from error
    except StateConflictError as error:
        code = type(error).__name__.removesuffix("Error")
        raise ConflictError(code, [{"path": "", "code": code, "message": str(error)}]) from error


def actor_of(request: Request) -> str:
    """Name the key of an authenticated request, never its secret half."""
    key: ApiKey = request.auth  # type: ignore[assignment] # set by authenticate
    return f"key {key.name} ({key.key_id})"


class RefusedGoalSerializer(serializers.Serializer[Any]):
    """Why a request was refused, field by field."""

    detail = serializers.CharField()
    code = serializers.CharField()
    errors = FaultSerializer(many=True)  # type: ignore[assignment] # a field


class QueuedGoalSerializer(serializers.Serializer[Any]):
    """A goal that was accepted."""

    id = serializers.UUIDField()
    correlation_id = serializers.CharField()
    status = serializers.ChoiceField(choices_of(Goal.Status))
    url = serializers.CharField()


class GoalSummarySerializer(serializers.Serializer[Any]):
    """One goal of a list."""

    id = serializers.UUIDField()
    correlation_id = serializers.CharField()
    reference = serializers.CharField()
    url = serializers.CharField()
    goal = serializers.CharField(help_text="redacted and cut")
    mode = serializers.ChoiceField(Goal.Mode.choices)
    runner = serializers.CharField()
    status = serializers.ChoiceField(choices_of(Goal.Status))
    outcome = serializers.ChoiceField(list(Goal.Outcome), allow_null=True)
    source = serializers.ChoiceField(["planner", "stub", "given"])  # type: ignore[assignment] # a field
    provider = serializers.CharField(allow_null=True)
    model = serializers.CharField(allow_null=True)
    cycle = serializers.IntegerField()
    user_text = serializers.CharField(allow_blank=True)
    help = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class GoalPageSerializer(serializers.Serializer[Any]):
    """Goals, newest first, and the cursor of the next page."""

    items = GoalSummarySerializer(many=True)
    next = serializers.CharField(allow_null=True)


class ActionsSerializer(serializers.Serializer[Any]):
    """What came of a goal's actions; in every other mode these are absent."""

    toolset = serializers.CharField(required=False)
    applied = serializers.ListField(child=serializers.DictField(), required=False)
    parse_failures = serializers.ListField(child=serializers.DictField(), required=False)
    execution_failures = serializers.ListField(child=serializers.DictField(), required=False)
    parse_failed = serializers.IntegerField(required=False, help_text="in entries")
    execution_failed = serializers.IntegerField(required=False)
    summary = serializers.CharField(required=False, allow_blank=True)
    undone_at = serializers.DateTimeField(required=False, allow_null=True)
    kept = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="entries an undo left, because they were changed again",
    )


class GoalSerializer(GoalSummarySerializer, ActionsSerializer):
    """Everything that is known of a goal, redacted."""

    pdca_phase = serializers.ChoiceField(list(Goal.Phase))
    last_validation_error = serializers.DictField(allow_null=True)
    execution_eval = serializers.DictField(allow_null=True)
    next_user_question = serializers.CharField(allow_null=True)
    state = serializers.DictField(help_text="the state contract under one key")
    constraints = serializers.ListField(child=serializers.DictField())
    tools = serializers.ListField(child=serializers.CharField(), allow_null=True)
    retry = serializers.DictField()
    budget = serializers.DictField()
    max_iterations = serializers.IntegerField()
    attempts = serializers.ListField(child=serializers.DictField())
    events = serializers.ListField(child=serializers.DictField())
    plan = serializers.DictField(allow_null=True)
    results = serializers.ListField(child=serializers.DictField())
    runs = serializers.ListField(child=serializers.DictField())
    completion_check = serializers.DictField(allow_null=True)
    decisions = serializers.ListField(child=serializers.DictField())
