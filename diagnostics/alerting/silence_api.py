"""/api/v1/silences: what nobody is told of for a while."""

from datetime import datetime
from typing import Annotated

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.alerting.incident_actions import IncidentError, end_silence, silence
from diagnostics.alerting.incident_resources import Person
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.alerting.rule_rows import live_rules
from diagnostics.alerting.rules import FilterError
from diagnostics.alerting.silence_models import Silence
from diagnostics.redaction.redactor import SecretTypedError, refuse_secret
from diagnostics.rest.bodies import InvalidBodyError, fault, read_model
from diagnostics.rest.openapi import REFUSALS, ROW_PROBLEMS
from diagnostics.rest.resources import Listed, Resource
from diagnostics.selection.ranges import read_moment

Moment = Annotated[datetime, BeforeValidator(lambda value: read_moment(str(value), None))]


class SilenceRequest(BaseModel):
    """What is to be quiet until when; without a rule and a filter: everything."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra=lambda schema: schema.pop("additionalProperties")
    )

    rule_id: StrictInt | None = None
    filter: str = ""
    starts_at: Annotated[Moment, Field(default_factory=clock.now, description="default: now")]
    ends_at: Moment
    reason: str = ""


class SilenceResource(SilenceRequest, Resource):
    """A silence as it is kept."""

    id: int
    created_by: Person
    created_at: datetime


class SilencesView(KeyedView):
    """The silences of the key's project."""

    required_scopes = {"GET": Scope.READ, "POST": Scope.ADMIN}

    @extend_schema(responses={200: Listed[SilenceResource], **ROW_PROBLEMS})
    def get(self, request: Request) -> Response:
        """List the silences that are on or to come."""
        rows = Silence.objects.filter(project=project_of(request), ends_at__gt=clock.now())
        silences = rows.select_related("created_by").order_by("ends_at", "pk")
        return Response({"items": [SilenceResource.dump(row) for row in silences]})

    @extend_schema(request=SilenceRequest, responses={201: SilenceResource, **REFUSALS})
    def post(self, request: Request) -> Response:
        """Keep calls quiet until a time: notifications only, evaluation goes on."""
        key = key_of(request)
        body = read_model(request._request, SilenceRequest)
        try:
            row = silence(
                key.project_id,
                key,
                body.ends_at,
                rule=_rule(key.project_id, body.rule_id),
                text=refuse_secret(body.filter),
                reason=body.reason,
                starts_at=body.starts_at,
            )
        except (FilterError, SecretTypedError) as error:
            raise InvalidBodyError([fault("/filter", str(error))]) from error
        except IncidentError as error:
            raise InvalidBodyError([fault("/ends_at", str(error))]) from error
        row.refresh_from_db()
        return Response(SilenceResource.dump(row), status=status.HTTP_201_CREATED)


class SilenceView(KeyedView):
    """One silence."""

    required_scopes = {"DELETE": Scope.ADMIN}

    @extend_schema(responses={204: None, **ROW_PROBLEMS})
    def delete(self, request: Request, silence_id: int) -> Response:
        """End a silence now."""
        rows = Silence.objects.filter(project=project_of(request))
        end_silence(get_object_or_404(rows, pk=silence_id), key_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _rule(project_id: int, rule_id: int | None) -> AlertRule | None:
    if rule_id is None:
        return None
    rule = live_rules(project_id).filter(pk=rule_id).first()
    if rule is None:
        raise InvalidBodyError([fault("/rule_id", "not a rule of this project")])
    return rule
