"""Responses streamed from a thread, with a minimum rate for the client."""

import asyncio
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any

from config.exchange import Exchange, Message, Receive, Send, part_of, start_of

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
    """Return when the client has disconnected, skipping the rest of its request."""
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
