"""One request and its channels to the client, as ASGI has them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from threading import Lock
from typing import Any

from django.core.exceptions import RequestAborted
from django.http import HttpResponse
from django.http.response import HttpResponseBase

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class SlowBodyError(Exception):
    """The body came too slowly."""


class OverloadedError(Exception):
    """The server is busy. Send the request again."""


class Exchange:
    """One request and its channels, as passed to the threads."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Create it in the event loop that serves the request."""
        self.scope = scope
        self.receive = receive
        self.send = send
        self.loop = asyncio.get_running_loop()
        self.chunks: list[bytes] = []  # of the body
        self.size = 0
        # Without a body, of a known length or in chunks.
        names = {name for name, _ in scope["headers"]}
        self.is_complete = names.isdisjoint((b"content-length", b"transfer-encoding"))
        self._deadline: asyncio.Timeout | None = None
        self._is_refused = False
        self._response = Lock()

    @asynccontextmanager
    async def wait(self, seconds: float, error: type[Exception]) -> AsyncIterator[asyncio.Timeout]:
        """Raise `error` if the block takes longer, OverloadedError if the request is refused."""
        try:
            async with asyncio.timeout(seconds) as self._deadline:
                yield self._deadline
        except TimeoutError:
            raise (OverloadedError if self._is_refused else error) from None
        finally:
            self._deadline = None

    async def read_chunk(self) -> int:
        """Read the next part of the body; return its size."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise RequestAborted
        chunk: bytes = message.get("body", b"")
        self.chunks.append(chunk)
        self.size += len(chunk)
        self.is_complete = not message.get("more_body")
        return len(chunk)

    def refuse(self) -> None:
        """Refuse the request while it waits, and free its body."""
        self._is_refused = True
        self.chunks.clear()
        if self._deadline is not None:
            self._deadline.reschedule(self.loop.time())

    def raise_if_refused(self) -> None:
        if self._is_refused:
            raise OverloadedError

    def begin_response(self) -> bool:
        """Claim the response for the caller, which sends it; False if another one does."""
        return self._response.acquire(blocking=False)

    async def discard_rest(self, size: int, seconds: float) -> None:
        """Read on after the response, so that a client still sending gets to read it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while size > 0 and not self.is_complete:
                    message = await self.receive()
                    size -= len(message.get("body", b""))
                    self.is_complete = not message.get("more_body")


def header_of(scope: Message, name: bytes) -> str:
    """Return a header, empty without one; of several the first."""
    return next((value.decode("latin1") for key, value in scope["headers"] if key == name), "")


def start_of(response: HttpResponseBase) -> Message:
    headers = [
        (name.lower().encode("ascii"), value.encode("latin1")) for name, value in response.items()
    ]
    headers += [
        (b"set-cookie", cookie.OutputString().encode("ascii"))
        for cookie in response.cookies.values()
    ]
    return {"type": "http.response.start", "status": response.status_code, "headers": headers}


def part_of(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def send_whole(send: Send, response: HttpResponse) -> None:
    await send(start_of(response))
    await send(part_of(response.content, more=False))
