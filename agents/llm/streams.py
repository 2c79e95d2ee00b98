"""Answers that come in pieces: taken to their end, in time, and then judged as a whole.

1. The whole stream has the attempt's time, not each piece: at the deadline its connection is shut.
2. A stream that breaks off before it said anything is a failed call; the transport may repeat it.
3. One that breaks off later is an answer that was cut off: its finish reason says so, and it is
   judged as `truncated`, never asked for again behind the ladder's back.
4. An error that the provider sends in the stream is its failure, whatever came before it.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
from failsoft.parsing.surroundings import STREAM_CUT

# Far above what the parser reads: a server that never ends is cut off here.
MAX_PIECES = 200_000


@dataclass(slots=True)
class Pieces:
    """What came of a stream, as JSON; `is_broken` when the connection ended it."""

    items: list[dict[str, Any]] = field(default_factory=list)
    is_broken: bool = False


def read_pieces(stream: Any, sdk: ModuleType, deadline: float) -> Pieces:  # noqa: ANN401 - either SDK's
    """Take a stream to its end; `deadline` is a time of `time.monotonic`.

    CallTimeoutError at the deadline, UnavailableError for an error in the stream.
    """
    found = Pieces()
    with _shut_at(stream, deadline) as alarm:
        try:
            for item in stream:
                found.items.append(_as_json(item))
                if len(found.items) >= MAX_PIECES:
                    found.is_broken = True
                    break
        except (httpx2.TimeoutException, sdk.APITimeoutError) as error:
            raise CallTimeoutError("no whole answer in time") from error
        except (httpx2.TransportError, sdk.APIConnectionError):
            found.is_broken = True
        except sdk.APIError as error:
            raise ProviderUnavailableError("the stream ended in an error") from error
    if alarm.is_set():
        raise CallTimeoutError("no whole answer in time")
    return found


def whole_or_cut(completion: Completion, pieces: Pieces) -> Completion:
    """The answer, marked when it was cut off; a failed call when nothing had been said."""
    if completion.finish_reason is not None and not pieces.is_broken:
        return completion
    if not completion.text and not completion.tool_calls:
        if not pieces.is_broken:
            raise RefusedCallError("the stream does not contain an answer")
        raise ProviderUnavailableError("the stream broke off before any output")
    return replace(completion, finish_reason=completion.finish_reason or STREAM_CUT)


def _as_json(item: Any) -> dict[str, Any]:  # noqa: ANN401 - a model of an SDK, or JSON
    found = item if isinstance(item, dict) else item.to_dict(warnings=False)
    return dict(found)


@contextmanager
def _shut_at(stream: Any, deadline: float) -> Iterator[threading.Event]:  # noqa: ANN401 - either SDK's
    """Shut the stream's connection at the deadline; the event says that it came to that."""
    rang = threading.Event()

    def ring() -> None:
        rang.set()
        held = stream.response.extensions["network_stream"].get_extra_info("socket")
        try:
            held.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # It has ended by itself.

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), ring)
    timer.daemon = True
    timer.start()
    try:
        yield rang
    finally:
        timer.cancel()
        stream.close()


def read_address(base_url: str) -> str | None:
    """Return the address for an SDK, None for its official one; RefusedCallError for no URL."""
    if not base_url:
        return None
    try:
        # The SDKs parse it when they are opened, and let this fault of it through.
        httpx2.URL(base_url)
    except httpx2.InvalidURL as error:
        raise RefusedCallError("the provider's address is not a URL") from error
    return base_url
