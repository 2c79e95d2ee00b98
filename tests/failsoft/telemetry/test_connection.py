"""A server is asked where it was said to be, and nowhere else."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from failsoft.telemetry.connection import ServerAddress

_asked: list[str] = []


class _Redirects(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        _asked.append(self.path)
        self.send_response(302)
        # Another name of this machine: another server.
        self.send_header("Location", f"http://localhost:{self.server.server_port}/stolen")  # type: ignore[attr-defined] # a server of HTTP
        self.end_headers()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[ServerAddress]:
    _asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Redirects) as started:
        threading.Thread(target=started.serve_forever, daemon=True).start()
        yield ServerAddress(f"http://127.0.0.1:{started.server_port}", "fs_key")
        started.shutdown()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_key_follows_no_redirect_to_another_server(server: ServerAddress, method: str) -> None:
    reply = server.request(method, "/api/v1/runs", {} if method == "POST" else None)
    assert (reply.status, reply.detail) == (302, "HTTP 302")
    assert _asked == ["/api/v1/runs"]
