"""POST and GET /api/v1/deploys."""

from typing import Any

from django.db.models import Q
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import ValidationError as SchemaError
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import key_of, project_of
from diagnostics.ingest.api.batches import within_quota
from diagnostics.ingest.deploy_items import DeployKind, PostedDeploy
from diagnostics.ingest.deploys import deploys_of, record_deploy
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.quotas import admit, refuse_blocked
from diagnostics.rest.bodies import InvalidBodyError, read_object
from diagnostics.rest.cursors import read_cursor, write_cursor
from diagnostics.rest.examples import DEPLOY, DEPLOY_KEPT, DEPLOYS_PAGE
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import PAGE_PARAMETERS, TIME_PARAMETERS, read_list_limit, select
from diagnostics.rest.openapi import EXPORTS, REFUSALS, Numbers, Texts, describe_model
from failsoft.events import describe_errors
from failsoft.json_values import clean_json


class DeploySerializer(serializers.Serializer[Any]):
    """A deploy as kept."""

    id = Numbers()
    at = serializers.DateTimeField()
    kind = serializers.ChoiceField([kind.value for kind in DeployKind])
    source = Texts(allow_null=True)  # type: ignore[assignment] # the wire calls it so
    environment = Texts(allow_null=True)
    version = Texts()
    note = Texts(allow_blank=True)


class DeployPageSerializer(serializers.Serializer[Any]):
    """A page of deploys, newest first."""

    items = DeploySerializer(many=True)
    next = Texts(allow_null=True)


FIELDS = ("id", "at", "kind", "source", "environment", "version", "note")
SAME = ("kind", "source", "environment", "version")
PARAMETERS = [
    *TIME_PARAMETERS,
    OpenApiParameter("kind", str, enum=[kind.value for kind in DeployKind]),
    OpenApiParameter("source", str, description="exact"),
    OpenApiParameter("environment", str, description="exact"),
    OpenApiParameter("version", str, description="exact"),
    *PAGE_PARAMETERS,
]
MOST_STREAMED = 1_000_000


class DeploysView(ListView):
    """What was changed when."""

    required_scopes = {
        "POST": Scope.INGEST,
        "GET": Scope.READ,
        "OPTIONS": Scope.READ,
    }

    @extend_schema(
        operation_id="deploys_create",
        request={"application/json": describe_model(PostedDeploy)},
        examples=[DEPLOY, DEPLOY_KEPT],
        responses={201: DeploySerializer, 200: DeploySerializer, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Note a deploy: 201, or 200 when the same one was told before."""
        key = key_of(request)
        with within_quota():
            refuse_blocked(key)
            posted = read_deploy(request)
            admit(key, 1)
        row, is_new = record_deploy(key.project_id, posted)
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(describe_deploy(row), status=code)

    @extend_schema(
        operation_id="deploys_list",
        parameters=PARAMETERS,
        examples=[DEPLOYS_PAGE],
        responses={200: DeployPageSerializer, **EXPORTS},
    )
    def get(self, request: Request) -> HttpResponseBase:
        """List deploys, newest first."""
        asked = request.query_params.dict()
        selection = select(asked, PARAMETERS, also=("version",))
        found = deploys_of(project_of(request).pk, selection.begin, selection.end)
        for name in SAME:
            if asked.get(name):
                found = found.filter(**{name: asked[name].replace("\0", "")})

        def read_page(limit: int, cursor: str | None) -> Page:
            rows = list(found.filter(_before(cursor))[: limit + 1])
            last = rows[limit - 1] if len(rows) > limit else None
            after = write_cursor(last.at, last.pk) if last else None
            return [describe_deploy(row) for row in rows[:limit]], after

        limit = read_list_limit(request, MOST_STREAMED)
        return self.answer_list(request, FIELDS, read_page, limit, asked.get("cursor"))


def read_deploy(request: Request) -> PostedDeploy:
    """Return the deploy of a body; 422 lists every field that is wrong."""
    cleaned, fault = clean_json(read_object(request._request))
    if fault is not None:
        told = {"path": fault.path, "code": fault.code, "message": fault.message}
        raise InvalidBodyError([told])
    try:
        return PostedDeploy.model_validate(cleaned)
    except SchemaError as error:
        found = error.errors(include_input=False, include_url=False)
        raise InvalidBodyError(describe_errors(list(found))) from error


def describe_deploy(row: Deploy) -> dict[str, Any]:
    """Return a deploy in the wire format."""
    return {name: getattr(row, name) for name in FIELDS}


def _before(cursor: str | None) -> Q:
    if not cursor:
        return Q()
    at, key = read_cursor(cursor, int)
    return Q(at__lt=at) | Q(at=at, pk__lt=key)
