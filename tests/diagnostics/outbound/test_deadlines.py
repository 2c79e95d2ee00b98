"""One deadline for everything that leaves, whoever drips on the other side (S17)."""

import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.mail import EmailMessage

from diagnostics.outbound.addresses import ForbiddenAddressError
from diagnostics.outbound.pinned_http import PinnedHttpError, send_request
from diagnostics.outbound.smtp import EmailBackend
from failsoft.plans.execution import CallContext
from plans.tools.registry import call_tool
from tests.diagnostics.alerting.notifications.building import mail_server
from tests.diagnostics.reports.conftest import free_port
from tests.sinks import certificate, dripping_sink

# Far below the half minute that the sink drips, far above what a busy machine needs.
WIDE_SECONDS = 12.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "start",
    [
        pytest.param(b"", id="status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-Slow: ", id="header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", id="body to the end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n", id="chunk"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 3, id="continue"),
    ],
)
def test_s17_a_dripping_answer_ends_at_its_deadline(start: bytes) -> None:
    with dripping_sink(start) as sink:
        started = time.monotonic()
        with pytest.raises(PinnedHttpError, match="no answer within"):
            send_request(f"http://127.0.0.1:{sink.port}/", started + 1.0, allow_private=True)
        assert time.monotonic() - started < WIDE_SECONDS


def test_s17_a_dripping_handshake_ends_at_its_deadline() -> None:
    # The head of a TLS record, whose rest drips.
    with dripping_sink(b"\x16\x03\x03\x20\x00") as sink:
        started = time.monotonic()
        with pytest.raises(PinnedHttpError, match="no answer within"):
            send_request(f"https://127.0.0.1:{sink.port}/", started + 1.0, allow_private=True)
        assert time.monotonic() - started < WIDE_SECONDS


def test_s17_a_name_server_that_is_silent_ends_at_the_same_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = threading.Event()

    def look_up(*args: Any, **more: Any) -> Any:
        silent.wait(30)
        raise socket.gaierror("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    started = time.monotonic()
    with pytest.raises(ForbiddenAddressError, match="cannot be resolved"):
        send_request("http://slow.example/", started + 0.5, allow_private=True)
    assert time.monotonic() - started < WIDE_SECONDS
    silent.set()


@pytest.mark.slow
def test_s17_http_get_ends_at_its_deadline_and_leaves_no_thread_behind(settings: Any) -> None:
    settings.FAILSOFT_HTTP_ALLOW_PRIVATE = True
    before = threading.active_count()
    with dripping_sink() as sink:
        started = time.monotonic()
        with pytest.raises(Exception, match="no answer within"):
            call_tool("http_get", {"url": f"http://127.0.0.1:{sink.port}/"}, CallContext())
        assert time.monotonic() - started < 5.0 + WIDE_SECONDS
    assert threading.active_count() <= before + 1  # the sink's own


@pytest.mark.slow
@pytest.mark.parametrize("start", [b"", b"220-", b"220 ready\r\n250-"])
@pytest.mark.parametrize("use_ssl", [False, True])
def test_a_mail_server_that_drips_is_given_up(start: bytes, use_ssl: bool) -> None:
    mail = EmailMessage("subject", "text", "a@example.org", ["b@example.org"])
    with dripping_sink(start) as sink:
        backend = EmailBackend(host="127.0.0.1", port=sink.port, timeout=1, use_ssl=use_ssl)
        started = time.monotonic()
        with pytest.raises(OSError, match=r"no answer within 1 s|SSL"):
            backend.send_messages([mail])
        assert time.monotonic() - started < WIDE_SECONDS


@pytest.mark.parametrize("tls", ["ssl_context", "tls_context"])
def test_several_mails_leave_over_one_connection_by_tls_or_starttls(
    tls: str, tmp_path: Path
) -> None:
    mail = EmailMessage("subject", "text", "a@example.org", ["b@example.org"])
    port, is_tls = free_port(), tls == "ssl_context"
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with mail_server(port, **{tls: certificate(tmp_path)}) as box:
        backend = EmailBackend(host="127.0.0.1", port=port, use_ssl=is_tls, use_tls=not is_tls)
        vars(backend)["ssl_context"] = trusting
        backend.open()
        assert [backend.send_messages([mail]) for _ in range(2)] == [1, 1]
        backend.close()
    assert len(box.taken) == 2
