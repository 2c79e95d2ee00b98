"""The web server's application: an event loop receives requests, a few threads handle them.

1. The caller is identified: a program by its key, anybody else by address. A program without
   a live key is refused without its body.
2. The body is read. Bodies share a bounded memory; who holds most of it is refused first.
3. A thread gets the request with its complete body, so a slow client does not occupy a thread.
   Threads are shared fairly: pages never wait for telemetry alone, nor a project for another.
"""

import asyncio
import gc
import threading
from collections.abc import Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from time import monotonic
from typing import Any, cast

from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_started
from django.http import HttpResponse, JsonResponse
from django.urls import set_script_prefix

from config import ALIVE
from config.callers import PAGES, PROGRAMS, Callers
from config.exchange import (
    Exchange,
    Message,
    OverloadedError,
    Receive,
    Send,
    SlowBodyError,
    part_of,
    send_whole,
    start_of,
)
from config.held_bodies import BodyMemory, HeldBody
from config.readiness import database_answers
from config.turns import Turn, Turns
from diagnostics.accounts.authentication import REFUSED_BEFORE_BODY
from diagnostics.rest.batches import MAX_PLAIN_BYTES
from diagnostics.web.errors import report_hang

# Only the time spent waiting for the client counts.
READER_GRACE_SECONDS = 10.0
READER_BYTES_PER_SECOND = 16 << 10
BLOCK_BYTES = 64 << 10


class SlowReaderError(Exception):
    """the reader of a streamed answer takes less than its least rate"""


def reader_seconds(size: int) -> float:
    """Return the limit of the total wait for a client that has read `size` bytes."""
    return READER_GRACE_SECONDS + size / READER_BYTES_PER_SECOND


class Stream:
    """A response streamed from a thread, with a minimum rate for the client."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._disconnected = asyncio.run_coroutine_threadsafe(
            _wait_for_disconnect(exchange.receive), exchange.loop
        )
        self._waited = 0.0
        self._size = 0

    def send(self, response: Any) -> None:  # noqa: ANN401 - a streaming response
        """Send the response; stop at a disconnect, raise SlowReaderError for a slow client."""
        try:
            self._put(start_of(response))
            for block in _blocks(response):
                if self._disconnected.done():
                    return
                self._put(part_of(block, more=True))
            self._put(part_of(b"", more=False))
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
    while (await receive())["type"] != "http.disconnect":
        pass


async def _put(send: Send, message: Message) -> None:
    await send(message)


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


# One byte more than any view accepts, so that the view refuses the body itself.
LARGEST_BODY_BYTES = MAX_PLAIN_BYTES + 1
# The limits for the bodies of all requests; beyond them requests get 503.
HELD_BODY_BYTES = {PROGRAMS: 48 << 20, PAGES: 16 << 20}
BODY_GRACE_SECONDS = 10.0
BODY_BYTES_PER_SECOND = 1024
BODY_SECONDS = 60.0
# How long a refused client may go on sending, so that it gets to read the response.
LINGER_SECONDS = 2.0
# The longest wait of a complete request for a thread.
THREAD_SECONDS = 30.0
LARGE_BODY_BYTES = 256 << 10
REFUSED = 400
RETRY_SECONDS = 5
HEALTH_THREADS = 4
# So often, while a page is read, the database is asked whether it answers at all.
HANG_SECONDS = 2.5
READING = ("GET", "HEAD")


def body_seconds(size: int) -> float:
    """Return the time limit of a body after `size` bytes."""
    return min(BODY_GRACE_SECONDS + size / BODY_BYTES_PER_SECOND, BODY_SECONDS)


class Application(ASGIHandler):
    """Django's synchronous stack behind an event loop."""

    def __init__(self, threads: int) -> None:
        """Load the middleware; at most half of the threads send streams.

        `threads` is the number of programs' or of pages' requests at the same time; there are
        a few more, so that neither waits for the other alone.
        """
        super().__init__()
        count = threads + max(threads // 4, 1)
        self._turns = Turns(count, most_of_lane=threads, most_of_holder=max(threads - 1, 1))
        self._threads = ThreadPoolExecutor(count, "request")
        # Blocked requests must not block the readiness check.
        self._health = ThreadPoolExecutor(HEALTH_THREADS, "readiness")
        self._streams = threading.BoundedSemaphore(max(threads // 2, 1))
        self._callers = Callers()
        self._memory = {lane: BodyMemory(limit) for lane, limit in HELD_BODY_BYTES.items()}

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:  # type: ignore[override] # messages are plain dicts
        if scope["path"] == "/healthz" and scope["method"] in ("GET", "HEAD"):
            await send_whole(send, HttpResponse(ALIVE, content_type="text/plain"))
            return
        exchange = Exchange(scope, receive, send)
        response = await self._handle(exchange)
        if response is not None:
            await send_whole(send, response)
            if not exchange.is_complete:
                await exchange.discard_rest(LARGEST_BODY_BYTES, LINGER_SECONDS)

    async def _handle(self, exchange: Exchange) -> HttpResponse | None:
        """Return the response; None when it was streamed."""
        caller = await self._callers.identify(exchange.scope)
        memory, body = self._memory[caller.lane], HeldBody(caller.holder, exchange.refuse)
        memory.add(body)
        try:
            if caller.refusal is None:
                await self._read(exchange, memory, body)
            else:
                exchange.scope[REFUSED_BEFORE_BODY] = caller.refusal
            answer = self._answer(exchange, Turn(caller.lane, caller.holder.group), body)
            if caller.lane == PAGES and exchange.scope["method"] in READING:
                return await self._unless_hanging(exchange, answer)
            return await answer
        except RequestAborted:
            return _refusal(400, "broken_body", "The body broke off.")
        except SlowBodyError:
            return _refusal(408, "slow_body", SlowBodyError.__doc__)
        except OverloadedError:
            return _overloaded()
        finally:
            memory.remove(body)

    async def _read(self, exchange: Exchange, memory: BodyMemory, body: HeldBody) -> None:
        """Read the body, up to the size that every view refuses."""
        begin = exchange.loop.time()
        async with exchange.wait(body_seconds(0), SlowBodyError) as deadline:
            while not exchange.is_complete and exchange.size < LARGEST_BODY_BYTES:
                memory.grow(body, await exchange.read_chunk())
                exchange.raise_if_refused()
                deadline.reschedule(begin + body_seconds(exchange.size))

    async def _answer(self, exchange: Exchange, turn: Turn, body: HeldBody) -> HttpResponse | None:
        run = exchange.loop.run_in_executor
        if exchange.scope["path"] == "/readyz":
            return await run(self._health, self._respond, exchange)
        if not self._turns.take_free(turn):
            async with exchange.wait(THREAD_SECONDS, OverloadedError):
                await self._turns.take(turn)
        try:
            exchange.raise_if_refused()
            body.refuse = None
            return await run(self._threads, self._respond, exchange)
        finally:
            self._turns.release(turn)

    async def _unless_hanging(
        self, exchange: Exchange, answer: Coroutine[Any, Any, HttpResponse | None]
    ) -> HttpResponse | None:
        """Return the response to a reader, or 503 as soon as the database hangs.

        The thread is left to what it waits for.
        """
        task = asyncio.create_task(answer)
        try:
            while not (await asyncio.wait({task}, timeout=HANG_SECONDS))[0]:
                is_alive = await exchange.loop.run_in_executor(self._health, database_answers)
                if not is_alive and not task.done() and exchange.begin_response():
                    task.add_done_callback(_forget)
                    exchange.refuse()
                    request, error_response = self.create_request(exchange.scope, BytesIO())
                    response: Any = error_response if request is None else report_hang(request)
                    return cast("HttpResponse", response)
        except asyncio.CancelledError:
            task.cancel()
            raise
        return await task

    def _respond(self, exchange: Exchange) -> HttpResponse | None:
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
                buffered = HttpResponse(b"".join(response), status=response.status_code)
                buffered.headers = response.headers
                buffered.cookies = response.cookies
                return buffered
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
            if exchange.begin_response():
                Stream(exchange).send(response)
        finally:
            self._streams.release()
        return None


def _forget(task: "asyncio.Task[HttpResponse | None]") -> None:
    """Take the result of a request that was answered already."""
    if not task.cancelled():
        task.exception()


def _with_length(scope: Message, size: int) -> Message:
    if b"transfer-encoding" not in dict(scope["headers"]):
        return scope
    headers = [pair for pair in scope["headers"] if pair[0] != b"transfer-encoding"]
    return scope | {"headers": [*headers, (b"content-length", b"%d" % size)]}


def _refusal(status: int, code: str, detail: str | None) -> HttpResponse:
    return JsonResponse({"detail": detail, "code": code}, status=status)


def _overloaded() -> HttpResponse:
    response = _refusal(503, "overloaded", OverloadedError.__doc__)
    response["Retry-After"] = str(RETRY_SECONDS)
    return response
