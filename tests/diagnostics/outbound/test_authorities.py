"""A private authority that SSL_CERT_FILE names is trusted by whatever connects to servers."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import anyio
import httpx2
import pytest

from diagnostics.alerting.senders import SendError
from diagnostics.alerting.senders.chat import send_order
from diagnostics.outbound.pinned_http import PinnedHttpError, send_request
from plans.tools.mcp.transports import GuardedTransport
from tests.sinks import agreeing_sink, certificate


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The address of a server whose authority only `sink.pem` knows."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    server = HTTPServer(("127.0.0.1", 0), Answers)
    server.socket = certificate(tmp_path).wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def ask_as_webhook(url: str) -> int:
    return send_request(url, time.monotonic() + 5, allow_private=True).response.status_code


def ask_as_mcp(url: str) -> int:
    async def ask() -> int:
        async with httpx2.AsyncClient(transport=GuardedTransport(allow_private=True)) as client:
            return (await client.get(url)).status_code

    return anyio.run(ask)


def test_webhooks_and_pages_trust_the_named_authority(
    private: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(PinnedHttpError, match="CERTIFICATE_VERIFY_FAILED"):
        ask_as_webhook(private)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "sink.pem"))
    assert ask_as_webhook(private) == 204


def test_mcp_servers_are_trusted_by_the_named_authority(
    private: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        ask_as_mcp(private)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "sink.pem"))
    assert ask_as_mcp(private) == 204


def test_chat_servers_are_trusted_by_the_named_authority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with agreeing_sink(tmp_path) as sink:
        order = {
            "address": f"jsons://127.0.0.1:{sink.port}/hook",
            "title": "degrading",
            "body": "31 % of 412 runs",
            "links": "",
            "tone": "warning",
            "attributes": {},
            "storage": str(tmp_path),
            "allow_private": True,
        }
        with pytest.raises(SendError, match="SSL"):
            send_order(order)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "sink.pem"))
        send_order(order)
        assert len(sink.heard) == 1
