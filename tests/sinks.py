"""Receivers on loopback, with or without TLS: as strict as the real ones, or only dripping."""

import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socket import MSG_PEEK, create_server, socket
from threading import Event, Thread
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

TLS_HANDSHAKE = b"\x16"
# What the services want to hear, all at once.
AGREES = b"""{"ok": true, "status": "success", "success": true, "errcode": 0,
    "access_token": "t", "user_id": "@u:h", "home_server": "h", "device_id": "d",
    "room_id": "!r:h", "event_id": "e", "joined_rooms": [], "id": 1, "code": 200,
    "m.homeserver": {"base_url": "https://chat.example.org"},
    "data": {"requestId": "r", "alertId": "a"}, "requestId": "r", "result": {"id": 1}}"""


@dataclass(frozen=True)
class Limit:
    """The most that a field of a service may have, and what it answers to more."""

    host: str
    field: str
    most: int
    status: int
    answer: bytes
    is_in_bytes: bool = False

    def refuses(self, host: str, body: str) -> bool:
        """Whether the field of a body is longer."""
        try:
            value = json.loads(body)
            for name in self.field.split("."):
                value = value[int(name) if name.isdecimal() else name]
        except (ValueError, LookupError, TypeError):
            return False
        size = len(value.encode()) if self.is_in_bytes else len(value)
        return host == self.host and size > self.most


_BLOCK = "attachments.0.blocks"
_DISCORD = b'{"message": "Invalid Form Body", "code": 50035}'
_PAGERDUTY = b'{"status": "invalid event", "errors": ["Length of \'summary\' exceeds 1024"]}'
_TELEGRAM = b'{"ok": false, "error_code": 400, "description": "Bad Request: message is too long"}'
LIMITS = (
    Limit("discord.com", "content", 2_000, 400, _DISCORD),
    Limit("events.pagerduty.com", "payload.summary", 1_024, 400, _PAGERDUTY),
    Limit("api.opsgenie.com", "message", 130, 422, b'{"message": "message is too long"}'),
    Limit("api.opsgenie.com", "description", 15_000, 422, b'{"message": "is too long"}'),
    Limit("api.telegram.org", "text", 4_096, 400, _TELEGRAM),
    Limit("chat.googleapis.com", "text", 4_096, 400, b'{"error": {"code": 400}}'),
    Limit("hooks.slack.com", f"{_BLOCK}.0.text.text", 150, 400, b"invalid_blocks"),
    Limit("hooks.slack.com", f"{_BLOCK}.1.text.text", 3_000, 400, b"invalid_blocks"),
    # It takes more, though as an attachment that nobody reads.
    Limit("ntfy.example.org", "message", 4_096, 413, b"attachment", is_in_bytes=True),
    Limit("teams.example.org", "attachments.0.content.body.0.text", 28_000, 413, b"too large"),
)

Answer = tuple[int, dict[str, str], bytes]


class Sink:
    """What a receiver has heard: the heads and bodies of requests."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.heard: list[str] = []
        # Status, headers and body of what it answers whoever asks.
        self.refusal: Answer | None = None
        # When each connection was given up, by `time.monotonic`.
        self.left: list[float] = []


def certificate(folder: Path) -> ssl.SSLContext:
    """Return the TLS of a server here whose certificate, `sink.pem`, nobody knows."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sink")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=1,
        not_valid_before=now - timedelta(days=1),
        not_valid_after=now + timedelta(days=1),
    )
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    builder = builder.add_extension(here, critical=False)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    signed = builder.sign(key, hashes.SHA256())
    file = folder / "sink.pem"
    file.write_bytes(pem + signed.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


class _Agrees(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size).decode("utf-8", "replace")
        sink: Sink = self.server.sink  # type: ignore[attr-defined]
        sink.heard.append(f"{self.command} {self.path}\n{body}")
        host = self.headers["Host"]
        agreement: Answer = (200, {}, b"ok" if host == "hooks.slack.com" else AGREES)
        limits = [limit for limit in LIMITS if limit.refuses(host, body)]
        refusals: list[Answer] = [(limit.status, {}, limit.answer) for limit in limits]
        status, headers, answer = sink.refusal or next(iter(refusals), agreement)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_POST  # noqa: N815 - their names are given

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Say nothing."""


@contextmanager
def agreeing_sink(folder: Path) -> Iterator[Sink]:
    """Run a receiver that agrees to what the real one takes, of HTTP and HTTPS at one port."""
    context = certificate(folder)

    class Server(ThreadingHTTPServer):
        def finish_request(self, request: Any, client_address: Any) -> None:
            with suppress(OSError):
                if request.recv(1, MSG_PEEK) != TLS_HANDSHAKE:
                    super().finish_request(request, client_address)
                    return
                with context.wrap_socket(request, server_side=True) as wrapped:
                    super().finish_request(wrapped, client_address)

    server = Server(("127.0.0.1", 0), _Agrees)
    server.sink = sink = Sink(server.server_port)  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def dripping_sink(start: bytes = b"HTTP/1.1 200 OK\r\nX-Slow: ") -> Iterator[Sink]:
    """Run a server that says how it starts, and then a byte each fifth of a second.

    It gives up after half a minute, so that whoever waits for it does not wait for ever.
    """
    listener, over = create_server(("127.0.0.1", 0)), Event()
    sink, threads = Sink(listener.getsockname()[1]), list[Thread]()

    def drip(peer: socket) -> None:
        with peer, suppress(OSError):
            peer.sendall(start)
            for _ in range(150):
                if over.wait(0.2):
                    return
                peer.sendall(b"x")
        sink.left.append(time.monotonic())

    def accept() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listener.accept()
                sink.heard.append(str(time.monotonic()))
                threads.append(Thread(target=drip, args=[peer]))
                threads[-1].start()

    accepting = Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield sink
    finally:
        over.set()
        listener.close()
        for thread in threads:
            thread.join()
