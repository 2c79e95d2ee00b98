"""The web application: an event loop receives requests, a few threads handle them.

A thread gets a request with its complete body, so a slow client does not occupy a thread.
"""

import asyncio
import gc
import os
import threading
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from time import monotonic
from typing import Any, cast

import django
from django.conf import settings
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_started
from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import get_resolver, set_script_prefix

from config import ALIVE
from config.gc_tuning import freeze_loaded_objects
from diagnostics.rest.batches import MAX_PLAIN_BYTES

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# One byte more than any view accepts, so that the view refuses the body itself.
LARGEST_BODY_BYTES = MAX_PLAIN_BYTES + 1
# The limit for the bodies of all requests; beyond it requests get 503.
HELD_BODY_BYTES = 64 << 20
BODY_GRACE_SECONDS = 10.0
BODY_BYTES_PER_SECOND = 1024
BODY_SECONDS = 60.0
# The longest wait of a complete request for a thread.
THREAD_SECONDS = 30.0
# The same for clients of a streamed response; only the time spent waiting for them counts.
READER_GRACE_SECONDS = 10.0
READER_BYTES_PER_SECOND = 16 << 10
BLOCK_BYTES = 64 << 10
LARGE_BODY_BYTES = 256 << 10
REFUSED = 400
RETRY_SECONDS = 5
HEALTH_THREADS = 4


class SlowBodyError(Exception):
    """The body came too slowly."""


class OverloadedError(Exception):
    """The server is busy. Send the request again."""


class SlowReaderError(Exception):
    """the reader of a streamed answer takes less than its least rate"""


def body_seconds(size: int) -> float:
    """Return the time limit of a body after `size` bytes."""
    return min(BODY_GRACE_SECONDS + size / BODY_BYTES_PER_SECOND, BODY_SECONDS)


def reader_seconds(size: int) -> float:
    """Return the limit of the total wait for a client that has read `size` bytes."""
    return READER_GRACE_SECONDS + size / READER_BYTES_PER_SECOND


@dataclass
class Exchange:
    """One request and its channels, as passed to the threads."""

    scope: Message
    receive: Receive
    send: Send
    loop: AbstractEventLoop
    chunks: list[bytes] = field(default_factory=list)  # of the body
    size: int = 0


class Application(ASGIHandler):
    """Django's synchronous stack behind an event loop."""

    def __init__(self, threads: int) -> None:
        """Load the middleware; at most half of the threads send streams."""
        super().__init__()
        self._free_threads = asyncio.Semaphore(threads)
        self._threads = ThreadPoolExecutor(threads, "request")
        # Blocked requests must not block the readiness check.
        self._health = ThreadPoolExecutor(HEALTH_THREADS, "readiness")
        self._streams = threading.BoundedSemaphore(max(threads // 2, 1))
        self._held_bytes = 0

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the synchronous middleware, for threads."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:  # type: ignore[override] # messages are plain dicts
        """Handle a request (ASGI)."""
        if scope["path"] == "/healthz" and scope["method"] in ("GET", "HEAD"):
            await _send(send, HttpResponse(ALIVE, content_type="text/plain"))
            return
        exchange = Exchange(scope, receive, send, asyncio.get_running_loop())
        try:
            await self._read(exchange)
            response = await self._answer(exchange)
        except RequestAborted:
            response = _refusal(400, "broken_body", "The body broke off.")
        except SlowBodyError:
            response = _refusal(408, "slow_body", SlowBodyError.__doc__)
        except OverloadedError:
            response = _overloaded()
        finally:
            self._held_bytes -= exchange.size
        if response is not None:
            await _send(send, response)

    async def _read(self, exchange: Exchange) -> None:
        """Read the body, up to the size that every view refuses."""
        if not _has_body(exchange.scope):
            return
        begin = exchange.loop.time()
        try:
            async with asyncio.timeout_at(begin + body_seconds(0)) as deadline:
                while await self._read_chunk(exchange):
                    deadline.reschedule(begin + body_seconds(exchange.size))
        except TimeoutError:
            raise SlowBodyError from None

    async def _read_chunk(self, exchange: Exchange) -> bool:
        """Read one chunk; return False at the end."""
        message = await exchange.receive()
        if message["type"] == "http.disconnect":
            raise RequestAborted
        chunk = message.get("body", b"")
        exchange.chunks.append(chunk)
        exchange.size += len(chunk)
        self._held_bytes += len(chunk)
        if self._held_bytes > HELD_BODY_BYTES:
            raise OverloadedError
        is_too_large = exchange.size >= LARGEST_BODY_BYTES
        return bool(message.get("more_body")) and not is_too_large

    async def _answer(self, exchange: Exchange) -> HttpResponse | None:
        run = exchange.loop.run_in_executor
        if exchange.scope["path"] == "/readyz":
            return await run(self._health, self._respond, exchange)
        await self._take_thread()
        try:
            return await run(self._threads, self._respond, exchange)
        finally:
            self._free_threads.release()

    async def _take_thread(self) -> None:
        if not self._free_threads.locked():
            await self._free_threads.acquire()
            return
        try:
            async with asyncio.timeout(THREAD_SECONDS):
                await self._free_threads.acquire()
        except TimeoutError:
            raise OverloadedError from None

    def _respond(self, exchange: Exchange) -> HttpResponse | None:
        """Return the response of Django, in a thread; None when it was streamed."""
        set_script_prefix("/")
        request_started.send(sender=type(self), scope=exchange.scope)
        body = b"".join(exchange.chunks)
        request, error_response = self.create_request(
            _with_length(exchange.scope, len(body)), BytesIO(body)
        )
        response: Any = error_response if request is None else self.get_response(request)
        try:
            if not response.streaming:
                return cast("HttpResponse", response)
            if response.has_header("Content-Length"):  # a static file
                return _as_whole(response)
            return self._stream(exchange, response)
        finally:
            response.close()
            if response.status_code >= REFUSED and exchange.size >= LARGE_BODY_BYTES:
                # The traceback of a refusal and its frames are a cycle that holds the body.
                gc.collect(0)

    def _stream(self, exchange: Exchange, response: Any) -> HttpResponse | None:  # noqa: ANN401 - a streaming response
        if not self._streams.acquire(blocking=False):
            return _overloaded()
        try:
            Stream(exchange).send(response)
        finally:
            self._streams.release()
        return None


class Stream:
    """A response streamed from a thread, with a minimum rate for the client."""

    def __init__(self, exchange: Exchange) -> None:
        """Begin to watch for a disconnect of the client."""
        self._exchange = exchange
        self._disconnected = asyncio.run_coroutine_threadsafe(
            _wait_for_disconnect(exchange.receive), exchange.loop
        )
        self._waited = 0.0
        self._size = 0

    def send(self, response: Any) -> None:  # noqa: ANN401 - a streaming response
        """Send the response; stop at a disconnect, raise SlowReaderError for a slow client."""
        try:
            self._put(_start_of(response))
            for block in _blocks(response):
                if self._disconnected.done():
                    return
                self._put(_body(block, more=True))
            self._put(_body(b"", more=False))
        finally:
            self._disconnected.cancel()

    def _put(self, message: Message) -> None:
        begin = monotonic()
        sent = asyncio.run_coroutine_threadsafe(
            _put(self._exchange.send, message), self._exchange.loop
        )
        try:
            sent.result(reader_seconds(self._size) - self._waited)
        except TimeoutError:
            sent.cancel()
            raise SlowReaderError(SlowReaderError.__doc__) from None
        self._waited += monotonic() - begin
        self._size += len(message.get("body", b""))


async def _wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has disconnected, skipping the rest of its request."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _put(send: Send, message: Message) -> None:
    await send(message)


async def _send(send: Send, response: HttpResponse) -> None:
    await send(_start_of(response))
    await send(_body(response.content, more=False))


def _start_of(response: HttpResponseBase) -> Message:
    headers = [
        (name.lower().encode("ascii"), value.encode("latin1")) for name, value in response.items()
    ]
    headers += [
        (b"set-cookie", cookie.OutputString().encode("ascii"))
        for cookie in response.cookies.values()
    ]
    return {"type": "http.response.start", "status": response.status_code, "headers": headers}


def _body(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield pieces joined to larger blocks, to save iterations of the event loop."""
    block = bytearray()
    for piece in pieces:
        block += piece
        if len(block) >= BLOCK_BYTES:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


def _has_body(scope: Message) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _with_length(scope: Message, size: int) -> Message:
    """Return the scope of a chunked body as that of a body with a known length."""
    if b"transfer-encoding" not in dict(scope["headers"]):
        return scope
    headers = [pair for pair in scope["headers"] if pair[0] != b"transfer-encoding"]
    return scope | {"headers": [*headers, (b"content-length", b"%d" % size)]}


def _as_whole(response: Any) -> HttpResponse:  # noqa: ANN401 - a streaming response
    buffered = HttpResponse(b"".join(response), status=response.status_code)
    buffered.headers = response.headers
    buffered.cookies = response.cookies
    return buffered


def _refusal(status: int, code: str, detail: str | None) -> HttpResponse:
    return JsonResponse({"detail": detail, "code": code}, status=status)


def _overloaded() -> HttpResponse:
    response = _refusal(503, "overloaded", OverloadedError.__doc__)
    response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _load() -> Application:
    """Load everything before the first request."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # Threads of one web process share connections; see config.database.
    os.environ.setdefault("FAILSOFT_DATABASE_POOL_SIZE", "12")
    django.setup(set_prefix=False)
    app = Application(settings.FAILSOFT_WEB_THREADS)
    get_resolver().url_patterns  # noqa: B018 - loads on access
    freeze_loaded_objects()
    return app


application = _load()
