"""POST and GET /api/v1/goals, one goal, its answer and its end."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from agents.goals import records
from agents.goals.bodies import RefusedGoal, read_body, refusing
from agents.goals.events import STATE_OF
from agents.goals.models import Attempt, Goal
from agents.goals.requests import AnswerRequest, GoalRequest
from agents.goals.submission import answer_goal, cancel_goal, submit_goal
from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.audit_log import noting
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.rest.cursors import read_key
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import EVENT_PARAMETERS, read_choices, select
from diagnostics.rest.resources import BODY_PROBLEMS, EXPORTS, Paged, ProblemResource
from diagnostics.selection.conditions import matches, narrow, narrow_rows
from diagnostics.selection.query_language import Query, Term, Word
from diagnostics.selection.selection import Selection
from diagnostics.store.models import Event
from failsoft.identifiers import first_id

# Margin around the range for events and ids, which lets whole days be skipped.
AROUND = timedelta(hours=1)
FILTERED_COLUMNS = {
    "environment": "environment",
    "provider": "language_model__provider__name",
    "model": "language_model__name",
    "outcome": "outcome",
    "correlation_id": "correlation_id",
}
DEGRADED = ("degraded", "stubbed", "circuit_open", "provider_failed", "budget_exhausted")


def narrow_goals(
    goals: QuerySet[Goal], selection: Selection, since: datetime | None, until: datetime | None
) -> QuerySet[Goal]:
    """Keep the goals of since <= created < until that meet every term and word."""
    if since is not None:
        # Ids carry the time: the index of the list ends the search, not the first goal.
        goals = goals.filter(created_at__gte=since, pk__gte=first_id(since - AROUND))
    if until is not None:
        goals = goals.filter(created_at__lt=until)
    return narrow_rows(goals, selection, lambda term: _condition(term, since), _condition_of_word)


def _condition(term: Term, since: datetime | None) -> Q:
    """Return the condition of a term: on the goal or its attempts, otherwise on its events."""
    if term.field in FILTERED_COLUMNS:
        return matches(FILTERED_COLUMNS[term.field], term)
    match term.field, term.value:
        case "source", None:
            return matches("source", term)
        case "source", _:
            # Who sent the goal, or what made its plan: planner, stub, given.
            return matches("source", term) | matches("plan_source", term)
        case "node", node:
            return _has_attempt(Q(node=node))
        case "attempt", None:
            return ~_has_attempt(Q())
        case "attempt", str(number):
            return _has_attempt(Q(attempt=int(number)))
        case "kind", "degraded":
            return Q(outcome__in=DEGRADED)
        case "kind", str(kind) if kind in STATE_OF:
            return _has_attempt(Q(state=STATE_OF[kind]))
        case "kind", error_type:
            return _has_attempt(Q(error_type=error_type))
    return Q(_event_exists(term, since))


def _has_attempt(condition: Q) -> Q:
    return Q(Exists(Attempt.objects.filter(condition, goal=OuterRef("pk"))))


def _event_exists(term: Term, since: datetime | None) -> Exists:
    """Return whether an event of the goal matches; the caller applies the negation."""
    events = Event.objects.filter(
        project_id=OuterRef("project_id"), correlation_id=OuterRef("correlation_id")
    )
    if since is not None:
        events = events.filter(occurred_at__gte=since - AROUND)
    plain = Term(term.field, term.value, is_exact=term.is_exact)
    return Exists(narrow(events, Selection(text=Query((plain,)))))


def _condition_of_word(word: Word) -> Q:
    in_goal = Q(text_preview__icontains=word.text) | Q(correlation_id__icontains=word.text)
    return in_goal | _has_attempt(Q(preview__icontains=word.text))


REFUSALS = {**BODY_PROBLEMS, 409: RefusedGoal, 422: RefusedGoal}
KEY = OpenApiParameter(
    "Idempotency-Key", str, OpenApiParameter.HEADER, description="the same key, the same goal"
)
CHOICES: dict[str, list[str]] = {"status": list(Goal.Status), "mode": list(Goal.Mode)}
FILTERS = [
    *(OpenApiParameter(name, str, enum=values) for name, values in CHOICES.items()),
    *EVENT_PARAMETERS,
]
COLUMNS = list(records.GoalSummary.model_fields)


class GoalsView(ListView):
    required_scopes = {"POST": Scope.ADMIN, "GET": Scope.READ}
    most_streamed = 1_000_000

    @extend_schema(
        parameters=[KEY], request=GoalRequest, responses={202: records.QueuedGoal, **REFUSALS}
    )
    def post(self, request: Request) -> Response:
        """Queue a goal; a repeated Idempotency-Key returns the same goal."""
        with refusing():
            goal = submit_goal(
                project_of(request).pk, read_body(request), request.headers.get("Idempotency-Key")
            )
        return Response(_describe_queued(goal), status=status.HTTP_202_ACCEPTED)

    @extend_schema(parameters=FILTERS, responses={200: Paged[records.GoalSummary], **EXPORTS})
    def get(self, request: Request) -> HttpResponseBase:
        """List goals, newest first; all of them unless a time range is given."""
        params = request.query_params.dict()
        selection, choices = select(params, FILTERS, also=CHOICES), read_choices(params, CHOICES)
        since, until = selection.begin, selection.end
        if "range" in params:
            since, until = selection.window(clock.now())
        goals = narrow_goals(records.goals_of(project_of(request).pk), selection, since, until)
        matching = goals.filter(**choices)

        def read_page(limit: int, cursor: str | None) -> Page:
            goals, after = records.page_of(
                matching, limit, read_key(cursor, UUID) if cursor else None
            )
            return [records.goal_summary(goal) for goal in goals], after

        return self.answer_list(request, COLUMNS, read_page)


class GoalView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(responses={200: records.GoalResource, 404: ProblemResource})
    def get(self, request: Request, reference: str) -> Response:
        """Show a goal by its correlation id."""
        return Response(records.goal_record(_find(request, reference)))


class AnswerView(KeyedView):
    required_scopes = {"POST": Scope.ADMIN}

    @extend_schema(
        request=AnswerRequest, responses={202: records.QueuedGoal, 404: ProblemResource, **REFUSALS}
    )
    def post(self, request: Request, reference: str) -> Response:
        """Answer a waiting goal, which then continues; a secret only as a reference."""
        goal = _find(request, reference)
        with refusing(), noting(goal.project_id, key_of(request), "goal.answered", reference):
            answer_goal(goal, read_body(request))
        goal.refresh_from_db()
        return Response(_describe_queued(goal), status=status.HTTP_202_ACCEPTED)


class CancelView(KeyedView):
    required_scopes = {"POST": Scope.ADMIN}

    @extend_schema(
        request=None, responses={202: records.QueuedGoal, 404: ProblemResource, 409: RefusedGoal}
    )
    def post(self, request: Request, reference: str) -> Response:
        """Cancel a goal; 409 if it has ended already."""
        goal = _find(request, reference)
        with refusing(), noting(goal.project_id, key_of(request), "goal.cancelled", reference):
            cancel_goal(goal)
        goal.refresh_from_db()
        return Response(_describe_queued(goal), status=status.HTTP_202_ACCEPTED)


def _find(request: Request, reference: str) -> Goal:
    goal = records.find_goal(project_of(request).pk, reference)
    if goal is None:
        raise Http404
    return goal


def _describe_queued(goal: Goal) -> dict[str, Any]:
    return records.QueuedGoal.dump({**vars(goal), "url": records.goal_path(goal)})
