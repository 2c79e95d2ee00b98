"""OTLP over gRPC: refused with a gRPC status, which exporters print."""

from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

GRPC = "opentelemetry.proto.collector"
UNIMPLEMENTED = "12"
SAYS = (
    "OTLP is taken over HTTP alone: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf,"
    " or let a collector translate"
)


@csrf_exempt
def refuse_grpc(request: HttpRequest) -> HttpResponse:
    """Respond without a message: clients read only the status in the headers."""
    headers = {"grpc-status": UNIMPLEMENTED, "grpc-message": quote(SAYS, safe=" :=/,_")}
    return HttpResponse(content_type="application/grpc", headers=headers)
