"""/api/v1/entries, and undoing what a goal has applied."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.actions.applying import undo_actions
from agents.actions.models import Entry
from agents.goals.bodies import RefusedGoal, refusing
from agents.goals.records import ActionsResource, actions_record, find_goal
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.audit_log import noting
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.rest.cursors import BadCursorError
from diagnostics.rest.filters import read_choices, read_limit, refuse_unknown
from diagnostics.rest.resources import ProblemResource
from failsoft.actions.entries import CATEGORIES, STATUSES
from failsoft.json_values import clean_text


class EntrySerializer(serializers.ModelSerializer[Entry]):
    """An entry, redacted; `due_text` is as it was written, `due_at` what it means."""

    class Meta:
        model = Entry
        fields = [
            *("id", "content", "summary", "source_text", "category", "priority", "due_text"),
            *("due_at", "cadence", "status", "snooze_until", "created_at"),
        ]


class EntryPageSerializer(serializers.Serializer[Any]):
    """Entries, the most important first, and the cursor of the next page."""

    items = EntrySerializer(many=True)
    next = serializers.CharField(allow_null=True)


class UndoView(KeyedView):
    required_scopes = {"POST": Scope.ADMIN}

    @extend_schema(
        request=None, responses={200: ActionsResource, 404: ProblemResource, 409: RefusedGoal}
    )
    def post(self, request: Request, reference: str) -> Response:
        """Undo what was applied; `kept` are the entries that were changed since."""
        goal = find_goal(project_of(request).pk, reference)
        if goal is None:
            raise Http404
        with refusing(), noting(goal.project_id, key_of(request), "goal.undone", reference):
            undo_actions(goal)
        return Response(actions_record(goal))


CHOICES = {"status": list(STATUSES), "category": list(CATEGORIES)}
FILTERS = [
    *(OpenApiParameter(name, str, enum=values) for name, values in CHOICES.items()),
    OpenApiParameter("cursor", str),
    OpenApiParameter("limit", int),
]


class EntriesView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(parameters=FILTERS, responses={200: EntryPageSerializer, 400: ProblemResource})
    def get(self, request: Request) -> Response:
        """List entries: P1 to P5, then those without a priority."""
        params = request.query_params.dict()
        refuse_unknown(params, FILTERS)
        choices = read_choices(params, CHOICES)
        entries = Entry.objects.of(project_of(request).pk).filter(**choices).by_importance()
        if params.get("cursor"):
            of_project = Entry.objects.of(project_of(request).pk)
            last = of_project.filter(pk=clean_text(params["cursor"])).first()
            if last is None:
                raise BadCursorError
            entries = entries.after(last)
        limit = read_limit(params)
        rows = list(entries[: limit + 1])
        after = rows[limit - 1].pk if len(rows) > limit else None
        items = EntrySerializer(rows[:limit], many=True).data
        return Response({"items": items, "next": after})
