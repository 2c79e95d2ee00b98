"""A server on the loopback that keeps what it is sent, and a provider that sends to it."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider

from failsoft.telemetry.connection import ServerAddress
from failsoft.telemetry.runs import send_with
from failsoft.telemetry.sending import OtelSending
from failsoft.telemetry.setup import Setup


@dataclass(slots=True)
class Sent:
    """A span as the server reads it."""

    name: str
    trace: str
    parent: str
    status: int
    attributes: dict[str, Any]
    events: str


@dataclass(slots=True)
class Server:
    """What arrived, in order; `refusal` or `registered` answers schemas."""

    url: str
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    keys: set[str | None] = field(default_factory=set)
    refusal: dict[str, Any] | None = None
    registered: dict[str, Any] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        """The address of every request."""
        return [path for _, path, _ in self.requests]

    @property
    def schemas(self) -> dict[str, Any]:
        """Every registered schema, by node."""
        puts = [(path, body) for method, path, body in self.requests if method == "PUT"]
        return {path.rpartition("/")[2]: json.loads(body)["json_schema"] for path, body in puts}

    @property
    def spans(self) -> list[Sent]:
        """Every span, in the order of arrival."""
        bodies = [body for _, path, body in self.requests if path == "/v1/traces"]
        return [
            Sent(
                span.name,
                span.trace_id.hex(),
                span.parent_span_id.hex(),
                span.status.code,
                {pair.key: pair.value.string_value for pair in span.attributes},
                str(span.events),
            )
            for body in bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def span(self, name: str) -> Sent:
        """Return the only span with this name."""
        [found] = [span for span in self.spans if span.name == name]
        return found


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Server = self.server.kept  # type: ignore[attr-defined] # set below
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        server.requests.append((self.command, self.path, body))
        server.keys.add(self.headers["Authorization"])
        refusal = server.refusal if self.command == "PUT" else None
        is_put = self.command == "PUT"
        answer = json.dumps(refusal or (server.registered if is_put else {})).encode()
        self.send_response(422 if refusal else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_PUT = do_POST  # noqa: N815 - the base's name

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server = Server(f"http://127.0.0.1:{http.server_port}")
    http.kept = server  # type: ignore[attr-defined] # read by its handler
    thread = Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield server
    http.shutdown()
    http.server_close()
    thread.join()


@pytest.fixture
def provider(server: Server) -> Iterator[TracerProvider]:
    """A provider whose spans are sent to the server when it is flushed."""
    provider = TracerProvider(shutdown_on_exit=False)
    send_with(OtelSending(Setup(ServerAddress(server.url, "key")), provider))
    yield provider
    send_with(None)
    provider.shutdown()
