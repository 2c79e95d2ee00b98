"""Receivers on loopback that take whatever comes, with or without TLS, or only drip."""

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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


class Sink:
    """What a receiver has heard: the heads and bodies of requests."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.heard: list[str] = []
        # When each connection was given up, by `time.monotonic`.
        self.left: list[float] = []


def certificate(folder: Path) -> ssl.SSLContext:
    """Return the TLS of a server whose certificate nobody knows."""
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
        self.server.sink.heard.append(f"{self.command} {self.path}\n{body}")  # type: ignore[attr-defined]
        is_slack = self.headers["Host"] == "hooks.slack.com"
        answer = b"ok" if is_slack else AGREES
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_POST  # noqa: N815 - their names are given

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Say nothing."""


@contextmanager
def agreeing_sink(folder: Path) -> Iterator[Sink]:
    """Run a receiver that agrees to everything, of HTTP and HTTPS at one port."""
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
