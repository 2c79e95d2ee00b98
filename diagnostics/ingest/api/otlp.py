"""POST /v1/traces and /v1/logs: OTLP over HTTP, in protobuf or JSON.

Every response is in the encoding of the request: an export response with `partial_success`,
or a `google.rpc.Status`. Overload is 503 with Retry-After, since exporters treat 429 as final.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar
from urllib.parse import quote

import structlog
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.utils import extend_schema
from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from pydantic import Field
from rest_framework import status
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of
from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.key_counts import note_items
from diagnostics.ingest.otlp import json_encoding, protobuf
from diagnostics.ingest.otlp.telemetry import MalformedError, TooManyError
from diagnostics.ingest.quotas import refuse_blocked
from diagnostics.ingest.receiving import Receipt, receive_logs, receive_spans
from diagnostics.ingest.rejects import Refusal, note_refusals
from diagnostics.rest.batches import TooLargeError
from diagnostics.rest.bodies import JSON_TYPE, BodyTooLargeError, WrongKindError, read_plain
from diagnostics.rest.resources import Resource
from failsoft.parsing.strict import JsonTextError

logger = structlog.get_logger(__name__)

PROTOBUF_TYPE = "application/x-protobuf"
# The google.rpc.Code of each HTTP status.
RPC_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 411: 3, 413: 3, 415: 3, 503: 14}
RPC_UNKNOWN = 2
# Short: an exporter gives up if the wait exceeds its timeout.
RETRY_SECONDS = "2"
# Caused by the sender: recorded in the rejects inbox, without the body.
KEPT_STATUSES = frozenset({400, 411, 413, 415})
REFUSED_CODE = "otlp_request"
NOTED = (
    "items accepted duplicates known waiting ignored rejected joined not_understood unclear"
    " dropped_attributes"
)
KEPT_HEADERS = ("WWW-Authenticate", "Retry-After", "Allow")
GRPC = "opentelemetry.proto.collector"
UNIMPLEMENTED = "12"
SAYS = (
    "OTLP is taken over HTTP alone: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf,"
    " or let a collector translate"
)
NO_METRICS = (
    "metrics are not taken: set OTEL_METRICS_EXPORTER=none, or let the collector export traces and"
    " logs alone"
)


class StatusResource(Resource):
    """A google.rpc.Status with the reason why the whole request was refused."""

    code: int = Field(description="google.rpc.Code")
    message: str


class PartialResource(Resource):
    """How many items were refused, and why; a warning if none were."""

    rejectedSpans: str = ""  # noqa: N815 - OTLP's name
    rejectedLogRecords: str = ""  # noqa: N815 - OTLP's name
    errorMessage: str = ""  # noqa: N815 - OTLP's name


class ExportedResource(Resource):
    """An export response: empty if every item was accepted."""

    partialSuccess: PartialResource = PartialResource()  # noqa: N815 - OTLP's name


DESCRIBED: dict[str, Any] = {
    "request": {
        PROTOBUF_TYPE: {"type": "string", "format": "binary"},
        JSON_TYPE: {"type": "object"},
    },
    "responses": {
        200: ExportedResource,
        **dict.fromkeys((400, 401, 403, 413, 415, 503), StatusResource),
    },
}


class AnyAccept(DefaultContentNegotiation):
    """Responds in the encoding of the request, whatever the client accepts."""

    def select_renderer(
        self,
        request: Request,
        renderers: Any,  # noqa: ANN401 - a list of classes
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], JSON_TYPE


class OtlpView(KeyedView):
    """Takes export requests from keys with the ingest scope."""

    renderer_classes = (JSONRenderer,)
    content_negotiation_class = AnyAccept
    required_scopes = {"POST": Scope.INGEST, "OPTIONS": Scope.INGEST}
    readers: ClassVar[Mapping[str, Callable[[bytes], Iterator[Any]]]] = {}
    answer_kind: ClassVar[Any]
    rejected_name: ClassVar[str]
    # Stores the items of a key and returns a receipt.
    receive: ClassVar[Any]

    def take(self, request: Request) -> HttpResponse:
        """Read and store items, and respond after commit."""
        kind = media_type_of(request._request)
        if kind not in self.readers:
            raise WrongKindError(kind, self.readers)
        key = key_of(request)
        refuse_blocked(key)
        with _refusing():
            body = read_plain(request._request)
            receipt: Receipt = self.receive(key.project_id, self.readers[kind](body), key)
        (logger.info if receipt.rejected else logger.debug)(
            "telemetry_received",
            path=request.path,
            project=key.project.slug,
            unchecked=receipt.unchecked.total(),
            **{name: getattr(receipt, name) for name in NOTED.split()},
        )
        # Exporters name their source per item.
        counted: dict[str, int] = {
            "stored": receipt.accepted,
            "duplicate": receipt.duplicates,
            "conflict": receipt.known,
            "invalid": receipt.rejected,
            "unchecked": receipt.unchecked.total(),
            "not_understood": receipt.not_understood + receipt.unclear,
            **receipt.time_marks,
        }
        note_items(key, {("", word): number for word, number in counted.items() if number})
        note_refusals(key, request.path, status.HTTP_200_OK, receipt.refusals)
        return self._answer(kind, receipt)

    def handle_exception(self, exc: Exception) -> Any:  # noqa: ANN401 - as DRF has it
        """Return every refusal as a Status in the encoding of the request."""
        answer = super().handle_exception(exc)
        code = answer.status_code
        # Not `auth`: it would query the database again, which may be down.
        key, message = vars(self.request).get("_auth"), str(answer.data.get("detail", ""))
        if isinstance(key, ApiKey) and code in KEPT_STATUSES:
            note_items(key, {("", "rejected"): 1})
            refusal = Refusal(REFUSED_CODE, "", message, "", 0)
            note_refusals(key, self.request.path, code, [refusal])
        if code == status.HTTP_503_SERVICE_UNAVAILABLE:
            answer.headers["Retry-After"] = RETRY_SECONDS
        if code == status.HTTP_429_TOO_MANY_REQUESTS:
            code = status.HTTP_503_SERVICE_UNAVAILABLE
        response = refuse(self.request._request, code, message)
        for name in KEPT_HEADERS:
            if name in answer.headers:
                response.headers[name] = answer.headers[name]
        return response

    def _answer(self, kind: str, receipt: Receipt) -> HttpResponse:
        answer = self.answer_kind()
        if receipt.rejected or receipt.message:
            partial = {self.rejected_name: receipt.rejected, "error_message": receipt.message}
            answer = self.answer_kind(partial_success=partial)
        if kind == PROTOBUF_TYPE:
            return HttpResponse(answer.SerializeToString(), content_type=kind)
        return JsonResponse(MessageToDict(answer))


class TracesView(OtlpView):
    """Spans: model calls become events."""

    readers = {PROTOBUF_TYPE: protobuf.read_spans, JSON_TYPE: json_encoding.read_spans}
    answer_kind = ExportTraceServiceResponse
    rejected_name = "rejected_spans"
    receive = staticmethod(receive_spans)

    @extend_schema(operation_id="otlp_traces", tags=["otlp"], **DESCRIBED)
    def post(self, request: Request) -> HttpResponse:
        """Take an ExportTraceServiceRequest (OTLP/HTTP), plain or gzip."""
        return self.take(request)


class LogsView(OtlpView):
    """Log records: answers that are not on the span of their call."""

    readers = {PROTOBUF_TYPE: protobuf.read_logs, JSON_TYPE: json_encoding.read_logs}
    answer_kind = ExportLogsServiceResponse
    rejected_name = "rejected_log_records"
    receive = staticmethod(receive_logs)

    @extend_schema(operation_id="otlp_logs", tags=["otlp"], **DESCRIBED)
    def post(self, request: Request) -> HttpResponse:
        """Take an ExportLogsServiceRequest (OTLP/HTTP), plain or gzip."""
        return self.take(request)


@extend_schema(exclude=True)
class MetricsView(OtlpView):
    """Takes no metrics."""

    def post(self, request: Request) -> HttpResponse:
        """Respond with 404: no exporter repeats what is not taken at all."""
        return refuse(request, status.HTTP_404_NOT_FOUND, NO_METRICS)


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except JsonTextError as error:
        raise ParseError(error.message) from error
    except MalformedError as error:
        raise ParseError(str(error)) from error
    except (TooLargeError, TooManyError) as error:
        raise BodyTooLargeError(str(error)) from error


def media_type_of(request: HttpRequest) -> str:
    kind, _, _ = request.headers.get("Content-Type", "").partition(";")
    return kind.strip().lower()


def refuse(request: HttpRequest, code: int, message: str) -> HttpResponse:
    """Return a Status with the message, in the encoding of the request."""
    rpc_code = RPC_CODES.get(code, RPC_UNKNOWN)
    if media_type_of(request) == PROTOBUF_TYPE:
        packed = Status(code=rpc_code, message=message).SerializeToString()
        return HttpResponse(packed, status=code, content_type=PROTOBUF_TYPE)
    return JsonResponse({"code": rpc_code, "message": message}, status=code)


@csrf_exempt
def refuse_grpc(request: HttpRequest) -> HttpResponse:
    """Respond without a message: clients read only the status in the headers."""
    headers = {"grpc-status": UNIMPLEMENTED, "grpc-message": quote(SAYS, safe=" :=/,_")}
    return HttpResponse(content_type="application/grpc", headers=headers)
