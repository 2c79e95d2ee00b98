"""POST and GET /api/v1/deploys."""

from datetime import datetime

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import key_of, project_of
from diagnostics.ingest.deploy_items import DeployKind, ObservedKind, PostedDeploy
from diagnostics.ingest.deploys import record_deploy
from diagnostics.ingest.models import deploys_of
from diagnostics.ingest.quotas import admit, refuse_blocked
from diagnostics.rest.bodies import read_model
from diagnostics.rest.cursors import Keyset
from diagnostics.rest.exporting import ListView, Page
from diagnostics.rest.filters import PAGE_PARAMETERS, TIME_PARAMETERS, filter_exactly, select
from diagnostics.rest.resources import EXPORTS, REFUSALS, Paged, Resource


class DeployResource(Resource):
    """A stored deploy."""

    id: int
    at: datetime
    kind: DeployKind | ObservedKind
    source: str | None
    environment: str | None
    provider: str | None
    model: str | None
    version: str
    previous: str | None
    note: str


DEPLOY_ORDER = Keyset("at", "pk", int)
SAME = ("kind", "source", "environment", "provider", "model", "version")
PARAMETERS = [
    *TIME_PARAMETERS,
    OpenApiParameter("kind", str, enum=[kind.value for kind in (*DeployKind, *ObservedKind)]),
    OpenApiParameter("source", str, description="exact"),
    OpenApiParameter("environment", str, description="exact"),
    OpenApiParameter("provider", str, description="exact; of what was observed"),
    OpenApiParameter("model", str, description="exact; of what was observed"),
    OpenApiParameter("version", str, description="exact"),
    *PAGE_PARAMETERS,
]


class DeploysView(ListView):
    required_scopes = {"POST": Scope.INGEST, "GET": Scope.READ}
    most_streamed = 1_000_000

    @extend_schema(
        request=PostedDeploy, responses={201: DeployResource, 200: DeployResource, **REFUSALS}
    )
    def post(self, request: Request) -> Response:
        """Record a deploy: 201, or 200 if it was reported before."""
        key = key_of(request)
        refuse_blocked(key)
        posted = read_model(request._request, PostedDeploy)
        admit(key, 1)
        row, is_new = record_deploy(key.project_id, posted)
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(DeployResource.dump(row), status=code)

    @extend_schema(parameters=PARAMETERS, responses={200: Paged[DeployResource], **EXPORTS})
    def get(self, request: Request) -> HttpResponseBase:
        """List deploys, newest first."""
        params = request.query_params.dict()
        selection = select(params, PARAMETERS, also=("version",))
        deploys = deploys_of(project_of(request).pk, selection.begin, selection.end)
        deploys = filter_exactly(deploys, params, SAME)

        def read_page(limit: int, cursor: str | None) -> Page:
            rows, after = DEPLOY_ORDER.page(deploys, limit, cursor)
            return [DeployResource.dump(row) for row in rows], after

        return self.answer_list(request, tuple(DeployResource.model_fields), read_page)
