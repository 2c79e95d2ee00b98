"""POST and GET /api/v1/goals, one goal, its answer and its end."""

from typing import Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.api.bodies import read_body, refusing
from agents.core.orders import AnswerOrder, GoalOrder
from agents.models import Goal
from agents.reading import (
    filter_goals,
    find_goal,
    goal_record,
    goal_summary,
    goals_of,
    page_of,
)
from agents.serializers import (
    GoalPageSerializer,
    GoalSerializer,
    QueuedGoalSerializer,
    RefusedGoalSerializer,
)
from agents.submitting import answer_goal, cancel_goal, submit_goal
from diagnostics.api.filters import read_limit
from diagnostics.api.openapi import describe_model
from diagnostics.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.core.api_keys import Scope
from diagnostics.serializers import ProblemSerializer

PROBLEMS = dict.fromkeys((400, 401, 403, 413, 415), ProblemSerializer)
REFUSALS = {**PROBLEMS, 409: RefusedGoalSerializer, 422: RefusedGoalSerializer}
KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="the same key, the same goal",
)
FILTERS = [
    OpenApiParameter(name, str)
    for name in (
        "status",
        "outcome",
        "mode",
        "provider",
        "model",
        "source",
        "q",
        "cursor",
    )
] + [OpenApiParameter("limit", int)]


class GoalsView(APIView):
    """Goals that are asked for, and those that were."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"POST": Scope.ADMIN, "GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="goals_create",
        parameters=[KEY],
        request={"application/json": describe_model(GoalOrder)},
        responses={202: QueuedGoalSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Queue a goal; the same Idempotency-Key again gives the same goal."""
        with refusing():
            submitted = submit_goal(
                project_of(request).pk,
                read_body(request),
                request.headers.get("Idempotency-Key"),
            )
        return Response(
            _describe_queued(submitted.goal), status=status.HTTP_202_ACCEPTED
        )

    @extend_schema(
        operation_id="goals_list",
        parameters=FILTERS,
        responses={200: GoalPageSerializer, 400: ProblemSerializer},
    )
    def get(self, request: Request) -> Response:
        """List goals, newest first."""
        asked = request.query_params.dict()
        found = filter_goals(goals_of(project_of(request).pk), asked)
        page, after = page_of(
            found, read_limit(asked), _read_cursor(asked.get("cursor"))
        )
        return Response({"items": [goal_summary(goal) for goal in page], "next": after})


class GoalView(APIView):
    """One goal of the key's project."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="goals_retrieve",
        responses={200: GoalSerializer, 404: ProblemSerializer},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Show a goal by its correlation id."""
        return Response(goal_record(_find(request, reference)))


class AnswerView(APIView):
    """What the user says to a goal that waits."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"POST": Scope.ADMIN, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="goals_answer",
        request={"application/json": describe_model(AnswerOrder)},
        responses={202: QueuedGoalSerializer, 404: ProblemSerializer, **REFUSALS},
    )
    def post(self, request: Request, reference: str) -> Response:
        """Answer a waiting goal, which goes on; a secret only as a reference."""
        goal = _find(request, reference)
        with refusing():
            answer_goal(goal, read_body(request))
        goal.refresh_from_db()
        return Response(_describe_queued(goal), status=status.HTTP_202_ACCEPTED)


class CancelView(APIView):
    """The end of a goal that is not wanted any more."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"POST": Scope.ADMIN, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="goals_cancel",
        request=None,
        responses={
            202: QueuedGoalSerializer,
            404: ProblemSerializer,
            409: RefusedGoalSerializer,
        },
    )
    def post(self, request: Request, reference: str) -> Response:
        """Ask a goal to end; 409 when it has ended already."""
        goal = _find(request, reference)
        with refusing():
            cancel_goal(goal)
        goal.refresh_from_db()
        return Response(_describe_queued(goal), status=status.HTTP_202_ACCEPTED)


def _find(request: Request, reference: str) -> Goal:
    goal = find_goal(project_of(request).pk, reference)
    if goal is None:
        raise Http404
    return goal


def _describe_queued(goal: Goal) -> dict[str, Any]:
    summary = goal_summary(goal)
    return {key: summary[key] for key in ("id", "correlation_id", "status", "url")}


def _read_cursor(text: str | None) -> UUID | None:
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError as error:
        raise ValidationError(
            {"cursor": "the cursor is none that was given out"}
        ) from error
