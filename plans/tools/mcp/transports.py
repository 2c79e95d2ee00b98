"""Transports to MCP servers: a child process, or HTTP."""

import os
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
from django.conf import settings as django_settings
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from diagnostics.outbound.addresses import choose_target
from diagnostics.outbound.credentials import read_credential
from plans.tools.server_settings import ServerSettings, is_reference

MAX_ANSWER_BYTES = 4 * 1024 * 1024


class AnswerTooLargeError(httpx2.ReadError):
    """The response of the server is larger than 4 MiB."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Checks the address of every request, and connects to that address."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request to the checked address, with the original Host header."""
        response = await self._inner.handle_async_request(await self._pin(request))
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - an async transport's
        response.stream = _Bounded(response.stream)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _pin(self, request: httpx2.Request) -> httpx2.Request:
        target = await anyio.to_thread.run_sync(
            lambda: choose_target(str(request.url), allow_private=self._allow_private)
        )
        headers = httpx2.Headers(request.headers)
        headers["Host"] = target.authority
        return httpx2.Request(
            request.method,
            request.url.copy_with(host=str(target.address), port=target.port),
            headers=headers,
            stream=request.stream,
            # Certificates are checked against the name, not the address.
            extensions={**request.extensions, "sni_hostname": target.host},
        )


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise AnswerTooLargeError(f"more than {MAX_ANSWER_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


_GUARD = Path(__file__).with_name("stdio_guard.py")
_LONGEST_LINE = 4 * 1024 * 1024
_ERROR_BYTES = 2_000
# A child of the program may hold on to its standard error.
_LAST_WORDS_SECONDS = 1.0
# Server-sent events may be far apart; a call has a limit of its own.
_QUIET_SECONDS = 600.0


class Complaints:
    """The tail of the standard error of a program."""

    def __init__(self, when_over: Callable[[], None]) -> None:
        self._kept: deque[bytes] = deque(maxlen=_ERROR_BYTES)
        self._when_over = when_over
        self._over = threading.Event()
        reading, self.writing = os.pipe()
        threading.Thread(target=self._read, args=(reading,), daemon=True).start()

    async def all_read(self) -> None:
        """Wait until the pipe is closed, a second at most."""
        await anyio.to_thread.run_sync(self._over.wait, _LAST_WORDS_SECONDS)

    def text(self) -> str:
        return b"".join(self._kept).decode("utf-8", "replace").strip()

    def _read(self, reading: int) -> None:
        while chunk := os.read(reading, _ERROR_BYTES):
            self._kept.extend(chunk[at : at + 1] for at in range(len(chunk)))
        os.close(reading)
        self._over.set()
        self._when_over()


@asynccontextmanager
async def program(settings: ServerSettings, complaints: Complaints) -> AsyncIterator[Any]:
    """Start the program of a server and yield its streams; it ends with this process."""
    guard = ["-I", "-S", str(_GUARD), str(os.getpid()), str(_LONGEST_LINE)]
    with os.fdopen(complaints.writing, "w") as errors:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=[*guard, str(settings.command), *settings.args],
            env=resolve(settings.env),
            cwd=settings.cwd,
            encoding_error_handler="replace",
        )
        async with stdio_client(parameters, errors) as streams:
            errors.close()  # the program has its own copy
            yield streams


@asynccontextmanager
async def address(settings: ServerSettings) -> AsyncIterator[Any]:
    """Yield the streams to the address of a server, which is checked first."""
    url = str(settings.url)
    is_free = settings.allow_private or django_settings.FAILSOFT_HTTP_ALLOW_PRIVATE
    # In a thread: a slow name server must not hold up the other connections.
    await anyio.to_thread.run_sync(lambda: choose_target(url, allow_private=is_free))
    client = httpx2.AsyncClient(
        transport=GuardedTransport(allow_private=is_free),
        headers=resolve(settings.headers),
        timeout=httpx2.Timeout(settings.timeout_seconds, read=_QUIET_SECONDS),
        trust_env=False,
    )
    async with client, streamable_http_client(url, http_client=client) as streams:
        yield streams


def resolve(values: Mapping[str, str]) -> dict[str, str]:
    """Replace references by their values; CredentialError names what cannot be read."""
    return {
        name: read_credential(value, "mcp_secret") if is_reference(value) else value
        for name, value in values.items()
    }
