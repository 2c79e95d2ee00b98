"""GET /api/v1/verdict: what the first line of the console says, for programs."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from diagnostics import clock
from diagnostics.access.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.api.filters import SERIES_PARAMETERS, select
from diagnostics.api.series import refuse_uncounted
from diagnostics.core.api_keys import Scope
from diagnostics.serializers import CauseVerdictSerializer
from diagnostics.verdicts.judging import verdict_of
from diagnostics.verdicts.wire import describe


class VerdictView(APIView):
    """Which calls got worse, since when, whether it is us or them, and what to change."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="verdict",
        parameters=SERIES_PARAMETERS,
        responses={200: CauseVerdictSerializer},
    )
    def get(self, request: Request) -> Response:
        """Judge the calls of the window (the last 24 hours unless told)."""
        selection = select(request.query_params.dict(), SERIES_PARAMETERS)
        refuse_uncounted(selection)
        verdict = verdict_of(project_of(request).pk, selection, clock.now())
        return Response(describe(verdict))
