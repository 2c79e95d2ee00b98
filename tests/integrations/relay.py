"""Hands chunked requests on with their length: Django's test server cannot read chunks.

The product's own server can (tests/security/test_hostile_bodies.py); exporters for Node send
nothing else.
"""

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@contextmanager
def running_relay(target: str) -> Iterator[str]:
    """Serve on a free port what is sent on to `target`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.target = target  # type: ignore[attr-defined] # read by its handler
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        url = self.server.target + self.path  # type: ignore[attr-defined]
        kept = ("Content-Type", "Content-Encoding", "Authorization")
        headers = {name: self.headers[name] for name in kept if name in self.headers}
        asked = urllib.request.Request(  # noqa: S310 - a loopback
            url, self._body(), headers, method=self.command
        )
        try:
            with urllib.request.urlopen(asked) as answer:  # noqa: S310 - a loopback
                self._answer(answer.status, answer.headers["Content-Type"], answer.read())
        except urllib.error.HTTPError as error:
            self._answer(error.code, error.headers["Content-Type"], error.read())

    do_PUT = do_POST  # noqa: N815 - the base's name

    def _body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        return b"".join(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""
