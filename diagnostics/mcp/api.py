"""POST /mcp: the tools of an assistant, with the keys, scopes and bounds of the REST API."""

from django.http import HttpResponse
from django.utils.module_loading import import_string
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import PermissionDenied
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView
from diagnostics.rest.bodies import BodyTooLargeError
from diagnostics.web.errors import own_origins

MAX_BODY_BYTES = 64 << 10


@extend_schema(exclude=True)
class McpView(KeyedView):
    """Streamable HTTP without sessions: GET and DELETE, which need one, answer 405."""

    required_scopes = dict.fromkeys(("GET", "POST", "DELETE", "OPTIONS"), Scope.READ)

    def perform_content_negotiation(
        self, request: Request, force: bool = False
    ) -> tuple[BaseRenderer, str]:
        """Return JSON, also where a stream of events is asked for alone."""
        return super().perform_content_negotiation(request, force=True)

    def post(self, request: Request) -> HttpResponse:
        origin = request.headers.get("Origin")
        # A page of another site, whose name was pointed at this server.
        if origin and origin not in own_origins(request._request):
            raise PermissionDenied("Pages of other sites may not call this address.")
        body = request._request.body
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLargeError
        # Not before somebody asks: a web process without assistants needs none of the SDK.
        answer: HttpResponse = import_string("diagnostics.mcp.protocol.answer_exchange")(
            request, body
        )
        return answer
