"""HTTP to a checked address: no proxy, no redirect, bounded in time and size."""

import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock, Timer
from types import TracebackType
from typing import Any, Self

import httpx

from diagnostics.outbound.addresses import choose_target, resolve_host


class Cutoff:
    """Ends its connections at a time of `time.monotonic`."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._watched: list[socket.socket] = []
        self._lock = Lock()
        self._timer = Timer(self.seconds_left, self._end)
        self._timer.daemon = True

    @property
    def seconds_left(self) -> float:
        """The remaining time, never 0, which would mean no limit."""
        return max(self.deadline - time.monotonic(), 0.001)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.deadline

    def watch(self, connection: socket.socket) -> None:
        """Register a connection, of TLS too (no `dup`); anything that wraps it ends with it."""
        with self._lock:
            self._watched.append(socket.socket(fileno=socket.dup(connection.fileno())))
        if self.is_over:
            self._end()

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            while self._watched:
                self._watched.pop().close()

    def _end(self) -> None:
        with self._lock:
            for connection in self._watched:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


MAX_SECONDS = 5.0
MAX_BYTES = 1024 * 1024
NO_ANSWER = f"no answer within {MAX_SECONDS:g} s"
OWN_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "failsoft"}


class PinnedHttpError(Exception):
    """The request failed; the message says why."""


class UnreachableError(PinnedHttpError):
    """The connection to the server failed."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    response: httpx.Response
    body: bytes

    @property
    def status(self) -> int:
        return self.response.status_code


def send_request(
    url: str,
    deadline: float,
    *,
    allow_private: bool,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    is_status_enough: bool = False,
) -> HttpAnswer:
    """Send a request to the checked address of a URL, without following redirects.

    `deadline` is a time of `time.monotonic` for the whole exchange, from the name server to the
    last byte of at most 1 MiB. Raises PinnedHttpError and ForbiddenAddressError; for what is wrong
    with the body, not where `is_status_enough`.
    """
    target = choose_target(
        url, allow_private=allow_private, resolve=partial(resolve_host, deadline=deadline)
    )
    with Cutoff(deadline) as cutoff:
        request = httpx.Request(
            method,
            target.pinned_url,
            headers={**OWN_HEADERS, **(headers or {}), "Host": target.authority},
            content=content,
            extensions={
                # Certificates are checked against the name, not the address.
                "sni_hostname": target.host,
                "trace": partial(_watch, cutoff),
            },
        )
        return _send(request, cutoff, is_status_enough)


def _send(request: httpx.Request, cutoff: Cutoff, is_status_enough: bool) -> HttpAnswer:
    try:
        # No proxy of the environment, but the authorities in its SSL_CERT_FILE.
        tls = httpx.create_ssl_context()
        with httpx.Client(verify=tls, trust_env=False, timeout=cutoff.seconds_left) as client:
            response = client.send(request, stream=True)
            answer = HttpAnswer(response, _read(response, is_status_enough))
    except httpx.HTTPError as error:
        words = f"{type(error).__name__}: {error}"
        if cutoff.is_over or isinstance(error, httpx.TimeoutException):
            words = NO_ANSWER
        is_gone = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        raise (UnreachableError if is_gone else PinnedHttpError)(words) from None
    if cutoff.is_over and not is_status_enough:
        # A body that ends with the connection may have been cut by the deadline.
        raise PinnedHttpError(NO_ANSWER)
    return answer


def _watch(cutoff: Cutoff, event: str, details: Mapping[str, Any]) -> None:
    if event == "connection.connect_tcp.complete":
        cutoff.watch(details["return_value"].get_extra_info("socket"))


def _read(response: httpx.Response, is_status_enough: bool) -> bytes:
    body = bytearray()
    try:
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > MAX_BYTES:
                break
    except httpx.HTTPError:
        if not is_status_enough:
            raise
    finally:
        response.close()
    if len(body) > MAX_BYTES and not is_status_enough:
        raise PinnedHttpError(f"the answer is larger than {MAX_BYTES} bytes")
    return bytes(body)
