"""The event loop in front of the threads: senders and readers have to keep up."""

import asyncio
import re
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.http import HttpResponse, StreamingHttpResponse

from config import web as web_module
from config.callers import PAGES
from config.exchange import Exchange
from config.held_bodies import BodyMemory
from config.local.parts import web_arguments
from config.turns import Turns
from config.web import Application, SlowReaderError, Stream
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.store.models import Event
from tests.diagnostics.builders import wire_event
from tests.security.web import ROOT, Web, running_web

HALF = (
    "POST /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
    "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n["
)
SENDERS = 60
Answer = list[dict[str, Any]]


def scope(path: str, method: str = "GET", *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"testserver"), *headers],
    }


def post(size: int = 1000) -> dict[str, Any]:
    return scope("/accounts/login/", "POST", (b"content-length", b"%d" % size))


def ask(
    application: Application,
    request: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
) -> Answer:
    sent: Answer = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(application(request, receive, send))
    return sent


async def hang() -> dict[str, Any]:
    await asyncio.sleep(60)
    raise AssertionError


async def no_body() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


def dripping(seconds: float, chunk: bytes) -> Callable[[], Awaitable[dict[str, Any]]]:
    async def receive() -> dict[str, Any]:
        await asyncio.sleep(seconds)
        return {"type": "http.request", "body": chunk, "more_body": True}

    return receive


@pytest.fixture
def application() -> Application:
    return Application(threads=2)


@pytest.fixture
def web() -> Iterator[Web]:
    with running_web() as running:
        yield running


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_sixty_half_sent_posts_stop_neither_health_nor_ingestion(web: Web) -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [Scope.INGEST]).text
    with ExitStack() as senders:
        for _ in range(SENDERS):
            link = socket.create_connection(("127.0.0.1", web.port), 5)
            senders.enter_context(link).sendall(HALF.format(key=key).encode())
        begin = time.monotonic()
        assert web.ask("GET", "/healthz", None, {})[0] == 200
        assert web.post_events(key, [wire_event()])[0] == 200
        assert time.monotonic() - begin < web_module.BODY_GRACE_SECONDS
    assert Event.objects.count() == 1


@pytest.mark.slow
def test_a_body_that_never_ends_is_refused_after_its_deadline(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_module, "BODY_GRACE_SECONDS", 0.1)
    start, body = ask(application, post(), hang)
    assert start["status"] == 408
    assert b"slow_body" in body["body"]


@pytest.mark.slow
def test_a_body_that_drips_below_the_least_rate_is_refused(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_module, "BODY_GRACE_SECONDS", 0.2)
    start, _ = ask(application, post(), dripping(0.05, b"x"))
    assert start["status"] == 408


@pytest.mark.parametrize(
    ("size", "seconds"),
    [
        (0, 10.0),  # nothing has come
        (20_480, 30.0),  # each KiB earns a second
        (4 << 20, 60.0),  # never more than a minute
    ],
)
def test_a_body_earns_its_time(size: int, seconds: float) -> None:
    assert web_module.body_seconds(size) == seconds


def test_of_a_body_over_the_bound_a_view_gets_one_byte_more_than_it_takes(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    def respond(exchange: Exchange) -> HttpResponse:
        return HttpResponse(str(exchange.size))

    monkeypatch.setattr(application, "_respond", respond)
    _, body = ask(application, post(100 << 20), dripping(0, b"x" * (1 << 20) + b"x"))
    assert body["body"] == str(web_module.LARGEST_BODY_BYTES + 3).encode()


@pytest.mark.slow
def test_bodies_together_stay_within_their_memory(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(application._memory, PAGES, BodyMemory(100 << 10))
    start, _ = ask(application, post(), dripping(0, b"x" * (60 << 10)))
    assert start["status"] == 503
    assert (b"retry-after", b"5") in start["headers"]
    monkeypatch.setattr(web_module, "BODY_GRACE_SECONDS", 0.1)
    start, _ = ask(application, post(), hang)
    assert start["status"] == 408


def test_a_request_that_gets_no_thread_is_told_to_come_back(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_module, "THREAD_SECONDS", 0.1)
    application._turns = Turns(0, 1, 1)
    assert ask(application, scope("/accounts/login/"), no_body)[0]["status"] == 503
    assert ask(application, scope("/healthz"), no_body)[0]["status"] == 200


def test_a_body_that_breaks_off_reaches_no_view(application: Application) -> None:
    async def leave() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    assert ask(application, post(), leave)[0]["status"] == 400


async def stream(send: Callable[[Any], Awaitable[None]], receive: Any) -> int:
    """Stream 4 MiB from a thread; how many pieces were made."""
    piece_count = 0

    def pieces() -> Iterator[bytes]:
        nonlocal piece_count
        for _ in range(64):
            piece_count += 1
            yield b"x" * web_module.BLOCK_BYTES

    exchange = Exchange(scope("/"), receive, send)
    answer = StreamingHttpResponse(pieces())
    await asyncio.to_thread(lambda: Stream(exchange).send(answer))
    return piece_count


def test_a_reader_who_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stuck(message: Any) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(web_module, "READER_GRACE_SECONDS", 0.1)
    with pytest.raises(SlowReaderError):
        asyncio.run(stream(stuck, hang))


def test_a_reader_who_has_left_costs_no_more_rows() -> None:
    async def take(message: Any) -> None:
        await asyncio.sleep(0.01)

    async def leave() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    assert asyncio.run(stream(take, leave)) < 64
    assert asyncio.run(stream(take, hang)) == 64


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_export_of_a_real_server_is_whole(web: Web) -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", list(Scope)).text
    events = [wire_event() for _ in range(3)]
    assert web.post_events(key, events)[0] == 200
    for kind in ("text/csv", "application/x-ndjson"):
        headers = {"Authorization": f"Bearer {key}", "Accept": kind}
        code, body = web.ask("GET", "/api/v1/events", None, headers)
        assert code == 200
        assert all(event["event_id"].encode() in body for event in events)


def test_a_stream_too_many_is_told_to_come_back(application: Application) -> None:
    assert application._streams.acquire(blocking=False)
    answer = application._stream(None, StreamingHttpResponse([b"x"]))  # type: ignore[arg-type] # it is not read
    assert answer is not None
    assert answer.status_code == 503


@pytest.mark.parametrize("name", ["systemd/failsoft-web.service", "Dockerfile"])
def test_shipped_units_serve_as_the_local_stack_does(name: str) -> None:
    unit = (ROOT / "docs/deployment" / name).read_text(encoding="utf-8")
    words = re.sub(r'[\\\n",\[\]]+', " ", unit).split()
    local = web_arguments(8000)
    for option in ("--interface", "--http", "--http1-header-read-timeout"):
        assert words[words.index(option) + 1] == local[local.index(option) + 1]
    assert "config.asgi:application" in words
    assert "--respawn-failed-workers" in words
