"""One exchange of the Model Context Protocol, by its SDK; loaded at the first of them.

Nothing is kept between exchanges: a server and a transport of their own answer each in JSON.
"""

import logging
from collections.abc import MutableMapping
from typing import Any

from anyio import sleep_forever
from asgiref.sync import async_to_sync, sync_to_async
from django.http import HttpResponse
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ListedTool
from rest_framework.request import Request

from diagnostics.mcp.bounds import NOTICE
from diagnostics.mcp.tools import TOOLS, QuestionRefusedError, call_tool
from failsoft import VERSION

Message = MutableMapping[str, Any]
INSTRUCTIONS = (
    "Failsoft knows how well planning and other calls of models go in one project. Call"
    f" degradation_now first. Every tool only reads. {NOTICE}"
)
READS_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
# What clients send is not logged.
logging.getLogger("mcp").setLevel(logging.CRITICAL)


def answer_exchange(caller: Request, body: bytes) -> HttpResponse:
    """Return the response to a POST; tools run in this thread, with its database connection."""
    return async_to_sync(_exchange)(caller, body)


async def _exchange(caller: Request, body: bytes) -> HttpResponse:
    async def call(context: object, params: CallToolRequestParams) -> CallToolResult:
        return await sync_to_async(_call)(caller, params)

    async def receive() -> Message:
        if received:
            return received.pop()
        # The client's end of the connection is the web server's business.
        await sleep_forever()
        raise RuntimeError

    async def send(message: Message) -> None:
        sent.append(message)

    received: list[Message] = [{"type": "http.request", "body": body}]
    sent: list[Message] = []
    server = Server(
        "failsoft",
        version=VERSION,
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=call,
    )
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    scope = {
        "type": "http",
        "method": "POST",
        "path": caller.path,
        "query_string": b"",
        "headers": [
            (name.lower().encode(), value.encode("latin-1", "replace"))
            for name, value in caller.headers.items()
        ],
    }
    async with manager.run():
        await manager.handle_request(scope, receive, send)
    start, *rest = sent
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return HttpResponse(
        b"".join(part.get("body", b"") for part in rest), status=start["status"], headers=headers
    )


async def _list_tools(context: object, params: object) -> ListToolsResult:
    return ListToolsResult(
        tools=[
            ListedTool(
                name=tool.name,
                description=tool.description,
                input_schema=tool.schema,
                annotations=READS_ONLY,
            )
            for tool in TOOLS
        ]
    )


def _call(caller: Request, params: CallToolRequestParams) -> CallToolResult:
    try:
        text, is_error = call_tool(caller, params.name, params.arguments or {}), False
    except QuestionRefusedError as error:
        text, is_error = str(error), True
    return CallToolResult(content=[TextContent(text=text)], is_error=is_error)
