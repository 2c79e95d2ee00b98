"""Calls of MCP tools, and the reasons of their failures.

- `tool_unavailable`: the server cannot be started, reached or understood.
- `tool_changed`: the schema of the tool differs from the discovered one.
- `unknown_outcome`: no response, and the tool may have had side effects.
- `tool_timeout`, `cancelled`: no response, and the call may be repeated.
- `tool_failed`: the tool ran and reported a failure.
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
from plans.tools.mcp.health import CallRefusedError, RemoteTool, ServerUnavailableError
from plans.tools.mcp.transports import HTTP_STATUS, NOT_FOUND, NOT_SENT

# The executor bounds outputs too; this avoids copying a huge response first.
_MAX_TEXT = 1024 * 1024


def output_of(result: mcp_types.CallToolResult) -> dict[str, JsonValue]:
    """Return the joined texts, the structured content, and the attachments.

    Images, audio, files and links are listed with kind, media type, size and URI; their bytes
    are dropped.
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
    """Return all texts of a response, those of files included, separated by newlines."""
    texts = [getattr(getattr(item, "resource", item), "text", None) for item in content]
    return "\n".join(text for text in texts if text)[: _MAX_TEXT + 1]


def _describe(item: Any) -> JsonValue:  # noqa: ANN401 - a union of the SDK
    resource = getattr(item, "resource", item)
    encoded = getattr(resource, "data", None) or getattr(resource, "blob", None) or ""
    text = getattr(resource, "text", None)
    uri = getattr(resource, "uri", None)
    return {
        "type": str(item.type),
        "media_type": getattr(resource, "mime_type", None),
        "bytes": len(encoded) * 3 // 4 if text is None else len(text),
        "uri": None if uri is None else str(uri)[:2_000],
    }


_KEY = "failsoft/idempotency-key"
# A new connection may help: to another session, or with renewed credentials.
_OUTDATED = frozenset({NOT_SENT, 400, 401, NOT_FOUND})
_SILENT = "and its effect is unknown"


class RemoteToolError(Exception):
    """The tool reported a failure."""


def call_remote(
    remote: RemoteTool, args: Mapping[str, JsonValue], context: CallContext
) -> dict[str, JsonValue]:
    """Call a tool of a server and return its output; the module lists the failures."""
    connection = _connect(remote, context)
    try:
        try:
            result = _call(connection, remote, args, context)
        except CallRefusedError as error:
            if error.status not in _OUTDATED:
                raise
            connection.close()
            connection = _connect(remote, context)
            result = _call(connection, remote, args, context)
    except CallRefusedError as error:
        health.note_fault(remote.server, str(error))
        text = f"MCP server {remote.server} refused the call: {error}"
        raise ToolRefusedError("tool_unavailable", text) from None
    except ServerUnavailableError as error:
        connection.close()
        health.note_fault(remote.server, str(error))
        message = f"MCP server {remote.server} went away during the call: {error}"
        raise _unanswered(remote, "tool_unavailable", message) from None
    health.note_seen(remote.server)
    if result.is_error:
        raise RemoteToolError(text_of(result.content) or "no reason was given")
    return output_of(result)


def _connect(remote: RemoteTool, context: CallContext) -> connections.Connection:
    """Return a connection to a server whose tool still has the discovered schema."""
    ends_at = time.monotonic() + remote.settings.timeout_seconds
    try:
        connection = connections.wait_for(
            connections.connect(remote.server, remote.settings),
            _seconds_until(ends_at),
            context.is_cancelled,
        )
        connections.wait_for(connection.list_offer(), _seconds_until(ends_at), context.is_cancelled)
    except InterruptedError as error:
        raise ToolRefusedError("cancelled", str(error)) from None
    except Exception as error:  # noqa: BLE001 - any error is the fault of the server
        health.note_fault(remote.server, str(error))
        text = f"MCP server {remote.server} is not available: {error}"
        raise ToolRefusedError("tool_unavailable", text) from None
    _check_tool(remote, connection)
    return connection


def _check_tool(remote: RemoteTool, connection: connections.Connection) -> None:
    tool = connection.tools.get(remote.remote_name)
    if tool is not None and digest_of_tool(tool) == remote.digest:
        return
    # Its list, or its whole program, may be older than what was discovered.
    connection.close()
    discover_server(remote.server)
    change = "is gone" if tool is None else "has another schema now"
    text = f"{remote.name} {change} on its server; what is known of it was renewed."
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
        data = error.error.data
        status = data.get(HTTP_STATUS) if isinstance(data, dict) else None
        if status is not None and status < 500:
            raise CallRefusedError(connection.explain(error), status) from None
        if error.code == mcp_types.CONNECTION_CLOSED or status is not None:
            raise ServerUnavailableError(connection.explain(error)) from None
        raise RemoteToolError(f"{error} ({error.code})") from None
    except CallRefusedError:
        raise
    except Exception as error:  # noqa: BLE001 - any error is the fault of the server
        raise ServerUnavailableError(connection.explain(error)) from None


def _unanswered(remote: RemoteTool, reason: str, text: str) -> ToolRefusedError:
    if remote.repeatable:
        return ToolRefusedError(reason, text)
    return ToolRefusedError("unknown_outcome", f"{text}, {_SILENT}.")


def _seconds_until(ends_at: float) -> float:
    return max(ends_at - time.monotonic(), 0.001)
