"""/api/v1/breakers: states of circuit breakers, their transitions, and manual changes."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import BaseModel, Field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.breakers.models import Breaker, BreakerTransition
from agents.breakers.store import ManualChange, change_breaker
from agents.goals.bodies import RefusedGoal
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.rest.bodies import read_model
from diagnostics.rest.resources import ProblemResource
from failsoft.retry.breaker import Circuit, close, isolate

TRANSITIONS_SHOWN = 10
REASON_CHARACTERS = 200
MOVES: Mapping[str, Callable[[Circuit], Circuit]] = {"isolate": isolate, "close": close}
VERB = OpenApiParameter("verb", str, OpenApiParameter.PATH, enum=list(MOVES))


def with_latest(rows: QuerySet[Breaker]) -> QuerySet[Breaker]:
    """Read breakers with their latest transitions, newest first."""
    latest = BreakerTransition.objects.order_by("-id")[:TRANSITIONS_SHOWN]
    return rows.prefetch_related(Prefetch("transitions", latest, to_attr="latest"))


class TransitionSerializer(serializers.ModelSerializer[BreakerTransition]):
    """One change of state; `actor` is empty for an automatic change."""

    class Meta:
        model = BreakerTransition
        fields = ("from_state", "to_state", "at", "cause", "actor", "reason")


class BreakerSerializer(serializers.ModelSerializer[Breaker]):
    """One breaker with its latest transitions, newest first."""

    transitions = TransitionSerializer(many=True, source="latest")

    class Meta:
        model = Breaker
        fields = (
            *("id", "provider", "model", "operation", "kind", "state", "cause", "faults_in_row"),
            *("trips", "open_until", "changed_at", "transitions"),
        )


class BreakerListSerializer(serializers.Serializer[Any]):
    """All breakers of a project."""

    items = BreakerSerializer(many=True)


class BreakersView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(responses=BreakerListSerializer)
    def get(self, request: Request) -> Response:
        """List breakers by provider, model and operation."""
        rows = with_latest(Breaker.objects.filter(project=project_of(request)))
        return Response(BreakerListSerializer({"items": rows}).data)


class ReasonRequest(BaseModel, extra="forbid", str_strip_whitespace=True):
    """The reason for a manual change; it stays in the history."""

    reason: str = Field(min_length=1, max_length=REASON_CHARACTERS)


class MoveBreakerView(KeyedView):
    required_scopes = {"POST": Scope.ADMIN}

    @extend_schema(
        operation_id="breakers_move",
        parameters=[VERB],
        request=ReasonRequest,
        responses={
            200: BreakerSerializer,
            400: ProblemResource,
            404: ProblemResource,
            422: RefusedGoal,
        },
    )
    def post(self, request: Request, breaker_id: int, verb: str) -> Response:
        """Isolate it (no calls until it is closed) or close it (all faults are forgotten)."""
        if verb not in MOVES:
            raise Http404
        row = get_object_or_404(Breaker, project=project_of(request), pk=breaker_id)
        change = ManualChange(key_of(request), read_model(request._request, ReasonRequest).reason)
        change_breaker(row.pk, MOVES[verb], change)
        (moved,) = with_latest(Breaker.objects.filter(pk=row.pk))
        return Response(BreakerSerializer(moved).data)
