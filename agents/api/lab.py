"""POST /api/v1/lab/parse: what the parser makes of an answer, without asking any model."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.api.bodies import read_body, refusing
from agents.core.orders import ParseOrder, read_order
from agents.core.parsing import parse_answer
from diagnostics.access.authentication import ApiKeyAuthentication, HasScope
from diagnostics.api.openapi import describe_model
from diagnostics.core.api_keys import Scope
from diagnostics.serializers import ProblemSerializer


class PlaceSerializer(serializers.Serializer[Any]):
    """Why an answer is refused, and where: line and column count from 1."""

    type = serializers.CharField()
    line = serializers.IntegerField(allow_null=True)
    column = serializers.IntegerField(allow_null=True)
    message = serializers.CharField()


class ParsedSerializer(serializers.Serializer[Any]):
    """The verdict of the `parse` command."""

    ok = serializers.BooleanField()
    value = serializers.JSONField(allow_null=True)
    repairs = serializers.ListField(child=serializers.JSONField())
    coerced = serializers.ListField(child=serializers.JSONField())
    error = PlaceSerializer(allow_null=True)


class ParseView(APIView):
    """The recovering parser; nothing of what is sent is kept."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"POST": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="lab_parse",
        request={"application/json": describe_model(ParseOrder)},
        responses={
            200: ParsedSerializer,
            **dict.fromkeys((400, 401, 403, 413, 415, 422), ProblemSerializer),
        },
    )
    def post(self, request: Request) -> Response:
        """Read one answer; 200 whatever the verdict."""
        with refusing():
            order = read_order(ParseOrder, read_body(request))
        return Response(parse_answer(order.raw, order.expected, order.finish_reason))
