"""One call of a server's tool, and what each way of failing is called.

- `tool_unavailable`: the server cannot be started, reached or understood.
- `tool_changed`: the tool's schema is not the one that is known here any more.
- `unknown_outcome`: the answer did not come, and the tool may have changed the world.
- `tool_timeout`, `cancelled`: the answer did not come, and nothing can have changed.
- `tool_failed`: the tool ran and said that it failed.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from mcp import MCPError
from mcp import types as mcp_types
from pydantic import JsonValue

from failsoft.plans.execution import CallContext, ToolRefusedError, ToolTimeoutError
from plans.tools.mcp import connections, health
from plans.tools.mcp.connections import digest_of_tool
from plans.tools.mcp.discovery import discover_server
from plans.tools.mcp.health import RemoteTool, ServerUnavailableError, SessionEndedError

# The executor bounds outputs too; this keeps a huge answer from being copied first.
_MAX_TEXT = 1024 * 1024


def output_of(result: mcp_types.CallToolResult) -> dict[str, JsonValue]:
    """Return the texts as one, the structured content, and what else there was.

    Pictures, sounds and files are named by kind, media type and size; their bytes are
    not kept.
    """
    return {
        "text": text_of(result.content),
        "structured": result.structured_content,
        "attachments": [
            _describe(item)
            for item in result.content
            if not isinstance(item, mcp_types.TextContent)
        ],
    }


def text_of(content: Iterable[mcp_types.ContentBlock]) -> str:
    """Return all texts of an answer, a line apart."""
    texts = [item.text for item in content if isinstance(item, mcp_types.TextContent)]
    return "\n".join(texts)[: _MAX_TEXT + 1]


def _describe(item: Any) -> JsonValue:  # noqa: ANN401 - a union of the SDK
    held = getattr(item, "resource", item)
    encoded = getattr(held, "data", None) or getattr(held, "blob", None) or ""
    text = getattr(held, "text", None)
    uri = getattr(held, "uri", None)
    return {
        "type": str(item.type),
        "media_type": getattr(held, "mime_type", None),
        "bytes": len(encoded) * 3 // 4 if text is None else len(text),
        "uri": None if uri is None else str(uri)[:2_000],
    }


_KEY = "failsoft/idempotency-key"
# What the SDK says when a server does not know the session any more.
_SESSION_ENDED = "Session terminated"
_SILENT = "and its effect is unknown"


class RemoteToolError(Exception):
    """The tool says that it failed."""


def call_remote(
    remote: RemoteTool, args: Mapping[str, JsonValue], context: CallContext
) -> dict[str, JsonValue]:
    """Call a tool of a server and return its output; see above for how it may fail."""
    connection = _connect(remote, context)
    try:
        try:
            result = _call(connection, remote, args, context)
        except SessionEndedError:
            # The server refused before it looked at the call: once more, from new.
            connection.close()
            connection = _connect(remote, context)
            result = _call(connection, remote, args, context)
    except (ServerUnavailableError, SessionEndedError) as error:
        connection.close()
        raise _lost(remote, str(error)) from None
    health.note_seen(remote.server)
    if result.is_error:
        raise RemoteToolError(text_of(result.content) or "no reason was given")
    return output_of(result)


def _connect(remote: RemoteTool, context: CallContext) -> connections.Connection:
    """Return a connection over which the tool is what it is known to be."""
    ends_at = time.monotonic() + remote.settings.timeout_seconds
    try:
        connection = connections.wait_for(
            connections.connect(remote.server, remote.settings),
            _left(ends_at),
            context.is_cancelled,
        )
        seen = connections.wait_for(connection.seen(), _left(ends_at), context.is_cancelled)
    except InterruptedError as error:
        raise ToolRefusedError("cancelled", str(error)) from None
    except Exception as error:  # noqa: BLE001 - whatever a server does is its fault
        health.note_fault(remote.server, str(error))
        text = f"MCP server {remote.server} is not available: {error}"
        raise ToolRefusedError("tool_unavailable", text) from None
    _check_tool(remote, seen.tools)
    return connection


def _check_tool(remote: RemoteTool, tools: Any) -> None:  # noqa: ANN401 - tools of the SDK
    digests = {tool.name: digest_of_tool(tool) for tool in tools}
    if digests.get(remote.remote_name) == remote.digest:
        return
    discover_server(remote.server)
    how = "has another schema now" if remote.remote_name in digests else "is gone"
    text = f"{remote.name} {how} on its server; what is known of it was renewed."
    raise ToolRefusedError("tool_changed", text)


def _call(
    connection: connections.Connection,
    remote: RemoteTool,
    args: Mapping[str, JsonValue],
    context: CallContext,
) -> mcp_types.CallToolResult:
    meta = {_KEY: context.idempotency_key} if context.idempotency_key else {}
    work = connection.call(remote.remote_name, args, meta)
    try:
        return connections.wait_for(work, remote.seconds, context.is_cancelled)
    except InterruptedError as error:
        raise _unanswered(remote, "cancelled", str(error)) from None
    except TimeoutError:
        # A program that does not answer one call may not answer the next.
        connection.close()
        text = f"no answer within {remote.seconds:g} s"
        health.note_fault(remote.server, f"{remote.remote_name}: {text}")
        if remote.repeatable:
            raise ToolTimeoutError(text) from None
        raise _unanswered(remote, "tool_timeout", text) from None
    except MCPError as error:
        if connection.is_over or error.code == mcp_types.CONNECTION_CLOSED:
            raise ServerUnavailableError(connection.explain(error)) from None
        if str(error) == _SESSION_ENDED:
            raise SessionEndedError(str(error)) from None
        raise RemoteToolError(f"{error} ({error.code})") from None
    except Exception as error:  # noqa: BLE001 - whatever a server does is its fault
        raise ServerUnavailableError(connection.explain(error)) from None


def _lost(remote: RemoteTool, text: str) -> ToolRefusedError:
    health.note_fault(remote.server, text)
    told = f"MCP server {remote.server} went away during the call: {text}"
    return _unanswered(remote, "tool_unavailable", told)


def _unanswered(remote: RemoteTool, reason: str, text: str) -> ToolRefusedError:
    if remote.repeatable:
        return ToolRefusedError(reason, text)
    return ToolRefusedError("unknown_outcome", f"{text}, {_SILENT}.")


def _left(ends_at: float) -> float:
    return max(ends_at - time.monotonic(), 0.001)
