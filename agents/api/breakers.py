"""GET /api/v1/breakers: where the circuit breakers stand, and what moved them."""

from typing import Any

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Breaker, BreakerTransition
from diagnostics.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.core.api_keys import Scope

TRANSITIONS_SHOWN = 10


class TransitionSerializer(serializers.ModelSerializer[BreakerTransition]):
    """One change of state; `actor` is empty when it happened by the rules."""

    class Meta:
        model = BreakerTransition
        fields = ("from_state", "to_state", "at", "cause", "actor")


class BreakerSerializer(serializers.ModelSerializer[Breaker]):
    """One breaker with its latest transitions, newest first."""

    transitions = TransitionSerializer(many=True, source="latest")

    class Meta:
        model = Breaker
        fields = (
            "provider",
            "model",
            "operation",
            "kind",
            "state",
            "cause",
            "faults_in_row",
            "trips",
            "open_until",
            "changed_at",
            "transitions",
        )


class BreakerListSerializer(serializers.Serializer[Any]):
    """All breakers of a project."""

    items = BreakerSerializer(many=True)


class BreakersView(APIView):
    """The breakers of the key's project; one that never saw a call is not there yet."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(operation_id="breakers_list", responses=BreakerListSerializer)
    def get(self, request: Request) -> Response:
        """List breakers by provider, model and operation."""
        latest = BreakerTransition.objects.order_by("-id")[:TRANSITIONS_SHOWN]
        found = Breaker.objects.filter(project=project_of(request)).prefetch_related(
            Prefetch("transitions", latest, to_attr="latest")
        )
        return Response(BreakerListSerializer({"items": found}).data)
