"""Streamed answers: read to their end, within a deadline, and then judged as a whole.

1. The attempt's timeout limits the whole stream, not each piece: its connection is shut then.
2. A stream that breaks off before any output is a failed call; the transport may retry it.
3. One that breaks off later is an answer that was cut off: its finish reason says so. It is
   judged as `truncated`, and only the retry policy may repeat it.
4. An error in the stream is the provider's failure, whatever came before it.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import httpx2

from agents.llm.provider import (
    CallTimeoutError,
    Completion,
    ProviderUnavailableError,
    RefusedCallError,
)
from failsoft.parsing.makers import STREAM_CUT

# Far above what the parser reads: a limit for a server that never ends.
MAX_PIECES = 200_000
TOO_LATE = "no whole answer in time"


@dataclass(slots=True)
class Pieces:
    """The items of a stream, as JSON; `is_broken` if the connection ended it."""

    items: list[dict[str, Any]] = field(default_factory=list)
    is_broken: bool = False


def read_pieces(stream: Any, sdk: ModuleType, deadline: float) -> Pieces:  # noqa: ANN401 - either SDK's
    """Read a stream to its end; `deadline` is a time of `time.monotonic`.

    CallTimeoutError at the deadline; the SDK's APIError for an error in the stream.
    """
    pieces = Pieces()
    with _limited(stream.response, deadline):
        try:
            for item in stream:
                fields = item if isinstance(item, dict) else item.to_dict(warnings=False)
                pieces.items.append(dict(fields))
                if len(pieces.items) >= MAX_PIECES:
                    pieces.is_broken = True
                    break
        except (httpx2.TimeoutException, sdk.APITimeoutError) as error:
            raise CallTimeoutError(TOO_LATE) from error
        except (httpx2.TransportError, sdk.APIConnectionError):
            pieces.is_broken = True
    return pieces


def read_whole(response: httpx2.Response, deadline: float) -> None:
    """Read the body of an answer that is no stream; errors as of `read_pieces`."""
    with _limited(response, deadline):
        response.read()


def whole_or_cut(completion: Completion, pieces: Pieces) -> Completion:
    """Return the answer, marked if it was cut off; ProviderError if there was no output."""
    if completion.finish_reason is not None and not pieces.is_broken:
        return completion
    if not completion.text and not completion.tool_calls:
        if not pieces.is_broken:
            raise RefusedCallError("the stream does not contain an answer")
        raise ProviderUnavailableError("the stream broke off before any output")
    return replace(completion, finish_reason=completion.finish_reason or STREAM_CUT)


@contextmanager
def _limited(response: httpx2.Response, deadline: float) -> Iterator[None]:
    """Shut the connection of a response at the deadline, and raise CallTimeoutError."""
    timed_out = threading.Event()

    def shut() -> None:
        timed_out.set()
        connection = response.extensions["network_stream"].get_extra_info("socket")
        with suppress(OSError):  # The answer has ended by itself.
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), shut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except httpx2.RequestError as error:
        if not (timed_out.is_set() or isinstance(error, httpx2.TimeoutException)):
            raise ProviderUnavailableError("the answer broke off") from error
        timed_out.set()
    finally:
        timer.cancel()
        response.close()
    if timed_out.is_set():
        raise CallTimeoutError(TOO_LATE)


def read_address(base_url: str) -> str | None:
    """Return the address for an SDK, None for its official one; RefusedCallError for no URL."""
    if not base_url:
        return None
    try:
        # The SDKs parse it when they are opened, but do not catch this error.
        httpx2.URL(base_url)
    except httpx2.InvalidURL as error:
        raise RefusedCallError("the provider's address is not a URL") from error
    return base_url
