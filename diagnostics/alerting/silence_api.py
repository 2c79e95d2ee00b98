"""/api/v1/silences: what nobody is told of for a while."""

from datetime import datetime
from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.alerting.incident_actions import IncidentError, end_silence, silence
from diagnostics.alerting.incident_api import fault
from diagnostics.alerting.incident_shapes import person_name
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.alerting.rule_rows import live_rules
from diagnostics.alerting.rules import FilterError
from diagnostics.alerting.silence_models import Silence
from diagnostics.redaction.redactor import SecretTypedError, refuse_secret
from diagnostics.rest.bodies import InvalidBodyError, read_fields
from diagnostics.rest.examples import answered, asked
from diagnostics.rest.openapi import REFUSALS, ROW_PROBLEMS
from diagnostics.selection.ranges import read_moment


class GivenSilenceSerializer(serializers.Serializer[Any]):
    """What is to be quiet until when; without a rule and a filter: everything."""

    rule_id = serializers.IntegerField(required=False, allow_null=True)
    filter = serializers.CharField(required=False, allow_blank=True)
    starts_at = serializers.DateTimeField(required=False, help_text="now unless told")
    ends_at = serializers.DateTimeField()
    reason = serializers.CharField(required=False, allow_blank=True)


class SilenceSerializer(GivenSilenceSerializer):
    """A silence as it is kept."""

    id = serializers.IntegerField()
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class SilenceListSerializer(serializers.Serializer[Any]):
    """The silences that are on or to come, the first to end first."""

    items = SilenceSerializer(many=True)


def describe_silence(row: Silence) -> dict[str, Any]:
    """Return a silence in the wire format."""
    names = ("id", "rule_id", "filter", "starts_at", "ends_at", "reason", "created_at")
    told = {name: getattr(row, name) for name in names}
    return {**told, "created_by": person_name(row.created_by)}


_GIVEN_SILENCE = {
    "filter": "model=claude-haiku-4",
    "ends_at": "2026-11-21T18:00:00Z",
    "reason": "the provider knows",
}
_SILENCE = {
    **_GIVEN_SILENCE,
    "id": 5,
    "rule_id": None,
    "starts_at": "2026-11-21T16:00:00Z",
    "created_at": "2026-11-21T16:00:00Z",
    "created_by": None,
}
NEW_SILENCE = asked("one model until six", _GIVEN_SILENCE)
SILENCE = answered("a silence as kept", _SILENCE, 200, 201)
SILENCES = answered("one silence", {"items": [_SILENCE]}, 200)
FIELDS = {
    "rule_id": int,
    "filter": str,
    "starts_at": str,
    "ends_at": str,
    "reason": str,
}


class SilencesView(KeyedView):
    """The silences of the key's project."""

    required_scopes: ClassVar[dict[str, Scope]] = {
        "GET": Scope.READ,
        "POST": Scope.ADMIN,
        "OPTIONS": Scope.READ,
    }

    @extend_schema(
        operation_id="silences_list",
        examples=[SILENCES],
        responses={200: SilenceListSerializer, **ROW_PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """List the silences that are on or to come."""
        rows = Silence.objects.filter(project=project_of(request), ends_at__gt=clock.now())
        told = rows.select_related("created_by").order_by("ends_at", "pk")
        return Response({"items": [describe_silence(row) for row in told]})

    @extend_schema(
        operation_id="silences_create",
        request=GivenSilenceSerializer,
        examples=[NEW_SILENCE, SILENCE],
        responses={201: SilenceSerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Keep calls quiet until a time: notifications only, evaluation goes on."""
        key = key_of(request)
        given = read_fields(request._request, FIELDS)
        try:
            row = silence(
                key.project_id,
                None,
                _moment(given, "ends_at") or clock.now(),
                rule=_rule(key.project_id, given.get("rule_id")),
                text=refuse_secret(given.get("filter", "")),
                reason=given.get("reason", ""),
                starts_at=_moment(given, "starts_at"),
                actor=key,
            )
        except (FilterError, SecretTypedError) as error:
            raise InvalidBodyError([fault("/filter", str(error))]) from error
        except IncidentError as error:
            raise InvalidBodyError([fault("/ends_at", str(error))]) from error
        row.refresh_from_db()
        return Response(describe_silence(row), status=status.HTTP_201_CREATED)


class SilenceView(KeyedView):
    """One silence."""

    required_scopes: ClassVar[dict[str, Scope]] = {
        "DELETE": Scope.ADMIN,
        "OPTIONS": Scope.READ,
    }

    @extend_schema(operation_id="silences_destroy", responses={204: None, **ROW_PROBLEMS})
    def delete(self, request: Request, silence_id: int) -> Response:
        """End a silence now."""
        rows = Silence.objects.filter(project=project_of(request))
        end_silence(get_object_or_404(rows, pk=silence_id), None, key_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _moment(given: dict[str, str], name: str) -> datetime | None:
    if name not in given:
        return None
    try:
        return read_moment(given[name], None)
    except ValueError as error:
        raise InvalidBodyError([fault(f"/{name}", str(error))]) from error


def _rule(project_id: int, rule_id: int | None) -> AlertRule | None:
    if rule_id is None:
        return None
    found = live_rules(project_id).filter(pk=rule_id).first()
    if found is None:
        raise InvalidBodyError([fault("/rule_id", "no rule of this project")])
    return found
