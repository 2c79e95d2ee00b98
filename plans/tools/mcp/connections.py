"""Connections to MCP servers: one per server and process, in a separate event loop.

1. A connection is opened at the first call, lists the server's tools, and is shared by
   all calls of the process. Programs are asked to `initialize` first: some end at any other
   message, or never answer it. Those that only know later revisions are started once more.
2. It is reopened when its program has ended, its configuration changed, or a call broke
   the connection.
3. When a server announces that its tools have changed, they are listed again before the
   next call.
"""

import asyncio
import json
import logging
import math
import os
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from mcp import Client, MCPError
from mcp import types as mcp_types
from mcp.client.session import IncomingMessage
from mcp.types import CONNECTION_CLOSED

from diagnostics.ingest.schemas.reading import ANNOTATIONS, MAPS
from diagnostics.redaction.redactor import redact
from plans.tools.mcp.health import CallRefusedError, ServerUnavailableError
from plans.tools.mcp.transports import NOT_SENT, Complaints, address, program
from plans.tools.server_settings import ServerSettings, digest_of

_MAX_PAGES = 50
MAX_TOOLS = 500
_FAULT_CHARACTERS = 500
_POLL_SECONDS = 0.25

# Messages of servers are not logged; their errors are raised and stored, redacted.
for _name in ("mcp", "client", "httpx2"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)

Returned = TypeVar("Returned")


@dataclass(frozen=True, slots=True)
class ServerOffer:
    tools: Sequence[mcp_types.Tool]
    name: str
    version: str
    protocol: str


class Connection:
    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.is_over = False
        self._calls = 0
        self.tools: Mapping[str, mcp_types.Tool] = {}
        self._is_stale = True
        self._client: Client | None = None
        self._complaints: Complaints | None = None
        self._scope = anyio.CancelScope()
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._task = asyncio.create_task(self._serve())

    async def open(self) -> None:
        """Wait until the session is open; ServerUnavailableError says why it is not."""
        await asyncio.shield(self._opened)

    async def list_offer(self) -> ServerOffer:
        """Return what the server offers; its tools are listed again when they are stale."""
        client = self._client
        if client is None:
            raise ServerUnavailableError("the connection is closed")
        if self._is_stale:
            self._is_stale = False
            self.tools = {tool.name: tool for tool in await _list_tools(client)}
        about = client.server_info
        return ServerOffer(
            tools=list(self.tools.values()),
            name=about.name if about else "",
            version=(about.version or "") if about else "",
            protocol=client.protocol_version,
        )

    async def call(
        self, name: str, args: Mapping[str, Any], meta: dict[str, Any]
    ) -> mcp_types.CallToolResult:
        """Call a tool, for as long as the caller waits; raises the errors of the SDK."""
        request_meta: Any = meta
        if self._client is None:
            raise CallRefusedError("the connection is closed", NOT_SENT)
        self._calls += 1
        try:
            return await self._client.call_tool(name, dict(args), meta=request_meta)
        finally:
            self._calls -= 1
            if self.is_over:
                self._end_if_idle()

    def close(self) -> None:
        """Let no new calls begin, from any thread; the session ends with the last one."""
        self.is_over = True
        self._loop.call_soon_threadsafe(self._end_if_idle)

    def _end_if_idle(self) -> None:
        if not self._calls:
            self._scope.cancel()

    def explain(self, error: BaseException) -> str:
        """Return the text of an error and the standard error of the program, redacted."""
        stderr = self._complaints.text() if self._complaints else ""
        first = _first_of(error)
        text = str(first) or type(first).__name__
        return redact(f"{text}; it wrote: {stderr}" if stderr else text)[:_FAULT_CHARACTERS]

    async def _serve(self) -> None:
        seconds = self.settings.timeout_seconds
        try:
            with self._scope:
                self._scope.deadline = anyio.current_time() + seconds
                try:
                    await self._run("auto" if self.settings.url else "legacy")
                except Exception as error:
                    first = _first_of(error)
                    is_answer = isinstance(first, MCPError) and first.code != CONNECTION_CLOSED
                    if self.settings.url or self._opened.done() or not is_answer:
                        raise
                    await self._run("auto")
            await self._refuse(TimeoutError(f"no answer within {seconds:g} s"))
        except Exception as error:  # noqa: BLE001 - any error is the fault of the server
            await self._refuse(error)
        finally:
            self.is_over = True
            self._client = None

    async def _refuse(self, error: BaseException) -> None:
        if not self._opened.done():
            if self._complaints:  # the connection may be over before its reason is read
                await self._complaints.all_read()
            self._opened.set_exception(ServerUnavailableError(self.explain(error)))

    async def _run(self, mode: str) -> None:
        client = Client(
            self._streams(),
            mode=mode,
            message_handler=self._on_message,
            cache=None,
            client_info=mcp_types.Implementation(name="failsoft", version="1"),
        )
        async with client as self._client:
            await self.list_offer()
            self._scope.deadline = math.inf
            self._opened.set_result(None)
            await anyio.sleep_forever()

    def _streams(self) -> Any:  # noqa: ANN401 - the SDK's transport
        if self.settings.url is not None:
            return address(self.settings)

        def note_end() -> None:
            self.is_over |= self._complaints is complaints

        complaints = self._complaints = Complaints(note_end)
        self.is_over = False  # of an earlier program
        return program(self.settings, complaints)

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._is_stale = True


class _Process:
    """The connections of this process, and the thread of their event loop."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._connections: dict[str, Connection] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    async def connection(self, server: str, settings: ServerSettings) -> Connection:
        async with self._locks.setdefault(server, asyncio.Lock()):
            connection = self._connections.get(server)
            if connection is None or connection.is_over or connection.settings != settings:
                if connection is not None:
                    connection.close()
                connection = self._connections[server] = Connection(settings)
            # A caller that gave up meanwhile may have left it unopened.
            await connection.open()
            return connection


_lock = threading.Lock()
_processes: list[_Process] = []


def _process() -> _Process:
    with _lock:
        if not _processes or _processes[-1].pid != os.getpid():
            _processes[:] = [_Process()]
        return _processes[-1]


def wait_for(
    work: Coroutine[Any, Any, Returned], seconds: float, is_cancelled: Callable[[], bool]
) -> Returned:
    """Run a coroutine from a thread, within `seconds` and until the run is cancelled.

    Raises TimeoutError, InterruptedError when cancelled, or the error of the coroutine.
    """
    future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), _process().loop)
    while not wait([future], _POLL_SECONDS).done:
        # A result that has just come counts.
        if is_cancelled() and future.cancel():
            raise InterruptedError("the run was cancelled")
    try:
        return future.result()
    except TimeoutError:
        raise TimeoutError(f"no answer within {seconds:g} s") from None


async def connect(server: str, settings: ServerSettings) -> Connection:
    return await _process().connection(server, settings)


async def fetch_offer(settings: ServerSettings) -> ServerOffer:
    connection = Connection(settings)
    try:
        await connection.open()
        return await connection.list_offer()
    finally:
        connection.close()


async def _list_tools(client: Client) -> list[mcp_types.Tool]:
    tools: list[mcp_types.Tool] = []
    cursors: list[str | None] = [None]
    while len(cursors) <= _MAX_PAGES and len(tools) <= MAX_TOOLS:
        page = await client.list_tools(cursor=cursors[-1])
        tools += page.tools
        # Some servers repeat one cursor for ever.
        if page.next_cursor is None or page.next_cursor in cursors:
            break
        cursors.append(page.next_cursor)
    return tools


def _first_of(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def digest_of_tool(tool: mcp_types.Tool) -> str:
    """Return the digest of a tool's name, arguments and hints, without its prose."""
    hints = tool.annotations.model_dump(exclude={"title"}) if tool.annotations else {}
    identity = [tool.name, _without_prose(tool.input_schema), hints]
    return digest_of(json.dumps(identity, sort_keys=True, ensure_ascii=True))


def _without_prose(part: Any, is_named: bool = False) -> Any:  # noqa: ANN401 - a JSON Schema
    """Return a schema without what checks nothing, such as today's date in a description."""
    if isinstance(part, list):
        return [_without_prose(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _without_prose(inner, not is_named and key in MAPS)
        for key, inner in part.items()
        if is_named or key not in ANNOTATIONS
    }
