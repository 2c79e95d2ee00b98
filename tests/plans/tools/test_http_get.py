"""`http_get` against a server of our own: redirects, limits, and what it sends (S17)."""

import http.server
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from diagnostics.outbound.addresses import ForbiddenAddressError
from diagnostics.outbound.pinned_http import MAX_BYTES
from plans.tools import builtin as module
from plans.tools.builtin import HttpGetArgs, HttpGetError, http_get


class _Answers(http.server.BaseHTTPRequestHandler):
    requests: list[dict[str, str]]

    def do_GET(self) -> None:
        type(self).requests.append(dict(self.headers))
        getattr(self, "answer_" + self.path.strip("/").partition("?")[0])()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        """Say nothing."""

    def _send(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self) -> None:
        self._send(b'{"a": [1]}', Content_Type="application/json")

    def answer_text(self) -> None:
        self._send("gr\u00fcn".encode("latin-1"), Content_Type="text/plain; charset=latin-1")

    def answer_missing(self) -> None:
        self._send(b"no", 404)

    def answer_large(self) -> None:
        self._send(b"x" * (MAX_BYTES + 1))

    def answer_packed(self) -> None:
        self._send(b"\x1f\x8b", Content_Encoding="gzip")

    def answer_mislabelled(self) -> None:
        self._send(b"{x", Content_Type="application/json; charset=klingon")

    def answer_hop(self) -> None:
        self._send(b"", 302, Location="/json")

    def answer_loop(self) -> None:
        self._send(b"", 302, Location="/loop")

    def answer_away(self) -> None:
        self._send(b"", 302, Location="file:///etc/passwd")

    def answer_slow(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(20):
            self.wfile.write(b"x")
            self.wfile.flush()
            time.sleep(0.1)


@pytest.fixture
def server(settings: Any) -> Iterator[str]:
    settings.FAILSOFT_HTTP_ALLOW_PRIVATE = True
    _Answers.requests = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_json_is_returned_as_text_and_as_json(server: str) -> None:
    output = http_get(HttpGetArgs(url=f"{server}/json"))
    assert output == {
        "url": f"{server}/json",
        "status": 200,
        "content_type": "application/json",
        "text": '{"a": [1]}',
        "json": {"a": [1]},
    }


def test_text_is_decoded_as_the_server_says(server: str) -> None:
    output = http_get(HttpGetArgs(url=f"{server}/text"))
    assert (output["text"], output["json"]) == ("gr\u00fcn", None)


def test_what_a_server_says_of_its_text_is_not_believed(server: str) -> None:
    output = http_get(HttpGetArgs(url=f"{server}/mislabelled"))
    assert (output["text"], output["json"]) == ("{x", None)


def test_a_server_that_is_not_there_is_said(server: str) -> None:
    with pytest.raises(HttpGetError, match="ConnectError"):
        http_get(HttpGetArgs(url="http://127.0.0.1:1/"))


def test_redirects_are_followed(server: str) -> None:
    output = http_get(HttpGetArgs(url=f"{server}/hop"))
    assert output["url"] == f"{server}/json"


@pytest.mark.parametrize(
    ("path", "why"),
    [("missing", "404"), ("large", "larger than"), ("packed", "compressed"), ("loop", "redirects")],
)
def test_what_cannot_be_used_is_said(server: str, path: str, why: str) -> None:
    with pytest.raises(HttpGetError, match=why):
        http_get(HttpGetArgs(url=f"{server}/{path}"))


def test_s17_every_redirect_is_looked_at_again(server: str) -> None:
    with pytest.raises(ForbiddenAddressError):
        http_get(HttpGetArgs(url=f"{server}/away"))


def test_s17_a_server_that_drips_is_given_up(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SECONDS", 0.4)
    started = time.monotonic()
    with pytest.raises(HttpGetError, match="no answer within"):
        http_get(HttpGetArgs(url=f"{server}/slow"))
    assert time.monotonic() - started < 1.5


def test_s17_proxies_of_the_environment_are_not_used(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9/")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9/")
    http_get(HttpGetArgs(url=f"{server}/json"))
    assert _Answers.requests[0]["Host"] == server.removeprefix("http://")
    assert _Answers.requests[0]["Accept-Encoding"] == "identity"


def test_s17_without_the_setting_nothing_is_connected(server: str, settings: Any) -> None:
    settings.FAILSOFT_HTTP_ALLOW_PRIVATE = False
    with pytest.raises(ForbiddenAddressError):
        http_get(HttpGetArgs(url=f"{server}/json"))
    assert _Answers.requests == []
