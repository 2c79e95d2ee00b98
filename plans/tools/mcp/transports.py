"""Transports to MCP servers: a child process, or HTTP."""

import json
import os
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import anyio.to_thread
import httpx2
from django.conf import settings as django_settings
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import INTERNAL_ERROR

from diagnostics.outbound.addresses import (
    Address,
    CheckedAddress,
    ForbiddenAddressError,
    choose_target,
)
from diagnostics.outbound.credentials import read_credential
from plans.tools.server_settings import ServerSettings, is_reference

MAX_ANSWER_BYTES = 4 * 1024 * 1024


# In the data of an error: the HTTP status that a call got instead of an answer.
HTTP_STATUS = "failsoft/http-status"
NOT_SENT, LOST, NOT_FOUND = 0, 599, 404
TASKS_ONLY = {"taskSupport": "required"}
_REASON_CHARACTERS = 200


class AnswerTooLargeError(httpx2.StreamError):
    """The response of the server is larger than 4 MiB."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Checks the address of every request, and connects to that address.

    What goes wrong with a message becomes the answer to it: an error whose data has the status.
    """

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        # No proxy of the environment, but the authorities in its SSL_CERT_FILE.
        tls = httpx2.create_ssl_context()
        self._inner = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request to the checked address, with the original Host header."""
        if request.method != "POST":
            return await self._send(request)
        try:
            response = await self._send(request)
            # Of a stream of events, each is bounded.
            if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                _bound(response)
            return response if response.status_code < 400 else await _explain(request, response)
        except (ForbiddenAddressError, httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            return _refuse(NOT_SENT, {"message": str(error)})
        except (httpx2.TransportError, httpx2.StreamError) as error:
            return _refuse(LOST, {"message": str(error) or type(error).__name__})

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        target = await anyio.to_thread.run_sync(
            lambda: choose_target(str(request.url), allow_private=self._allow_private)
        )
        *earlier, last = target.address, *target.spares
        for address in earlier:
            # A server on this machine may listen at one address of `localhost` only.
            with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return await self._inner.handle_async_request(_pinned(request, target, address))
        return await self._inner.handle_async_request(_pinned(request, target, last))


def _pinned(request: httpx2.Request, target: CheckedAddress, address: Address) -> httpx2.Request:
    headers = httpx2.Headers(request.headers)
    headers["Host"] = target.authority
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=str(address), port=target.port),
        headers=headers,
        stream=request.stream,
        # Certificates are checked against the name, not the address.
        extensions={**request.extensions, "sni_hostname": target.host},
    )


async def _explain(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """Return an error of HTTP as one of JSON-RPC, unless it is the answer to the message."""
    content = await response.aread()
    await response.aclose()
    try:
        answer = json.loads(content)
        error = {**answer["error"], "code": int(answer["error"]["code"])}
    except (ValueError, TypeError, KeyError, RecursionError):
        answer, error = {}, {}
    status, is_html = response.status_code, content.lstrip()[:1] == b"<"
    is_session_gone = status == NOT_FOUND and "Mcp-Session-Id" in request.headers
    if error and answer.get("id") == json.loads(request.content).get("id") and not is_session_gone:
        return httpx2.Response(status, json=answer)
    reason = error.get("message") or ("" if is_html else content.decode("utf-8", "replace"))
    told = f"HTTP {status} {response.reason_phrase}: {str(reason).strip()[:_REASON_CHARACTERS]}"
    return _refuse(status, {**error, "message": told.removesuffix(": ")})


def _refuse(status: int, error: Mapping[str, Any]) -> httpx2.Response:
    data = error.get("data")
    known = data if isinstance(data, dict) else {}
    marked = {"code": INTERNAL_ERROR, **error, "data": {**known, HTTP_STATUS: status}}
    # The SDK gives it the id of the request.
    return httpx2.Response(LOST, json={"jsonrpc": "2.0", "id": None, "error": marked})


def _bound(response: Any) -> None:  # noqa: ANN401 - its method is replaced
    """Let an answer that unpacks to more bytes than the limit raise AnswerTooLargeError."""
    unpack = response.aiter_bytes

    async def aiter_bounded(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in unpack(chunk_size):
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise AnswerTooLargeError(f"more than {MAX_ANSWER_BYTES} bytes")
            yield chunk

    response.aiter_bytes = aiter_bounded


class Messages:
    """The messages of a server, read as leniently as assistants read them."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - a stream of the SDK
        self._inner = inner

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the stream
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._inner.__aexit__(*error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - a message of the SDK
        item = await anext(self._inner)
        result = getattr(getattr(item, "message", None), "result", None)
        if isinstance(result, dict):
            _complete(result)
        return item


def _complete(result: dict[str, Any]) -> None:
    """Correct what would make the SDK refuse all tools of a list, or the whole result of a call."""
    if isinstance(result.get("tools"), list):
        named = (tool for tool in result["tools"] if isinstance(tool, dict))
        result["tools"] = [_plain_tool(tool) for tool in named if isinstance(tool.get("name"), str)]
    elif not result.keys().isdisjoint({"content", "structuredContent"}):
        result["content"] = result.get("content") or []


def _plain_tool(tool: dict[str, Any]) -> dict[str, Any]:
    """Return what is used of a tool. Results are not held to `outputSchema`: many miss theirs."""
    kept = {
        key: tool[key] for key in ("name", "description", "annotations", "_meta") if tool.get(key)
    }
    if tool.get("execution") == TASKS_ONLY:
        kept["execution"] = TASKS_ONLY
    given = tool.get("inputSchema")
    # Servers in PHP write empty objects as lists.
    schema = (
        {key: part for key, part in given.items() if part != []} if isinstance(given, dict) else {}
    )
    is_plain = schema.get("type", "object") == "object" and isinstance(
        schema.get("required", []), list
    )
    if not (is_plain and isinstance(schema.get("properties", {}), dict)):
        schema = {"allOf": [schema]}
    return {**kept, "inputSchema": {**schema, "type": "object"}}


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
            yield Messages(streams[0]), streams[1]


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
    transport = streamable_http_client(url, http_client=client, max_sse_event_size=MAX_ANSWER_BYTES)
    async with client, transport as streams:
        yield Messages(streams[0]), streams[1]


def resolve(values: Mapping[str, str]) -> dict[str, str]:
    """Replace references by their values; CredentialError names what cannot be read."""
    return {
        name: read_credential(value, "mcp_secret") if is_reference(value) else value
        for name, value in values.items()
    }
