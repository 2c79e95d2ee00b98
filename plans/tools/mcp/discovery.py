"""Discovery of the tools of MCP servers, stored for planners, pages and workers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from mcp import types as mcp_types

from diagnostics.clock import DatabaseNow
from diagnostics.ingest.schemas import SchemaFaultError, read_schema
from diagnostics.redaction.redactor import redact
from failsoft.json_values import clean_text
from failsoft.plans.outputs import UnusableOutputError, make_json
from plans.models.tool import McpServer, McpTool
from plans.tools.mcp import connections, health
from plans.tools.mcp.connections import digest_of_tool
from plans.tools.mcp.health import configured_servers
from plans.tools.server_settings import ServerSettings, digest_of, name_tools

_DESCRIPTION_BYTES = 2_000
_MAX_SCHEMA_BYTES = 64 * 1024
_MAX_NAME = 200
_GRACE_SECONDS = 5.0
_STRUCTURE = frozenset({"type", "required", "format", "$ref", "$schema", "$id"})


@dataclass(frozen=True, slots=True)
class Discovery:
    """The result of contacting a server; `error` is empty when it answered."""

    server: str
    tools: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


def discover_server(name: str) -> Discovery:
    settings = configured_servers()[name]
    row = health.server_row(name, settings)
    McpServer.objects.filter(pk=row.pk).update(asked_at=DatabaseNow())
    try:
        offer = connections.wait_for(
            connections.fetch_offer(settings),
            2 * settings.timeout_seconds + _GRACE_SECONDS,
            lambda: False,
        )
    except Exception as error:  # noqa: BLE001 - any error is the fault of the server
        text = redact(str(error))
        health.note_fault(name, text)
        return Discovery(name, error=text)
    return _store(row, settings, offer)


def _store(
    server: McpServer, settings: ServerSettings, offer: connections.ServerOffer
) -> Discovery:
    faults = {tool.name: _fault_of(tool) for tool in offer.tools[: connections.MAX_TOOLS]}
    beyond = f"only the first {connections.MAX_TOOLS} tools are used"
    faults.update((tool.name, beyond) for tool in offer.tools[connections.MAX_TOOLS :][:1])
    usable = [tool for tool in offer.tools if faults.get(tool.name) == ""]
    names = name_tools(server.name, [tool.name for tool in usable])
    tool_rows = [_tool_row(server, names[tool.name], tool) for tool in usable]
    left_out = {redact(clean_text(name[:80])): reason for name, reason in faults.items() if reason}
    with transaction.atomic():
        McpServer.objects.select_for_update().get(pk=server.pk)
        server.tools.exclude(name__in=names.values()).delete()
        McpTool.objects.bulk_create(
            tool_rows,
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=[
                *("remote_name", "description", "input_schema", "digest", "side_effects"),
                *("idempotent", "discovered_at"),
            ],
        )
        McpServer.objects.filter(pk=server.pk).update(
            server_name=redact(clean_text(offer.name))[:_MAX_NAME],
            server_version=redact(clean_text(offer.version))[: _MAX_NAME // 2],
            protocol_version=offer.protocol[:32],
            digest=digest_of("".join(sorted(tool.digest for tool in tool_rows))),
            seen_at=DatabaseNow(),
            last_error="; ".join(f"{name}: {reason}" for name, reason in left_out.items()),
        )
    return Discovery(server.name, sorted(names.values()), left_out)


def _tool_row(server: McpServer, name: str, tool: mcp_types.Tool) -> McpTool:
    """Return the row of a tool; without hints the worst is assumed."""
    hints = tool.annotations or mcp_types.ToolAnnotations()
    reads_only = hints.read_only_hint is True
    return McpTool(
        server=server,
        name=name,
        remote_name=tool.name,
        description=redact(clean_text(tool.description or ""), _DESCRIPTION_BYTES),
        input_schema=_redact_texts(make_json(tool.input_schema)),
        digest=digest_of_tool(tool),
        side_effects=not reads_only,
        idempotent=reads_only or hints.idempotent_hint is True,
        discovered_at=DatabaseNow(),
    )


def _fault_of(tool: mcp_types.Tool) -> str:
    if not tool.name or len(tool.name) > _MAX_NAME or tool.name != clean_text(tool.name):
        return f"a name has 1 to {_MAX_NAME} characters, without NUL"
    if tool.execution and tool.execution.task_support == "required":
        return "it can only run as a task, which is not supported"
    try:
        make_json(tool.input_schema)
        read_schema(tool.input_schema, is_ours=False)
    except (UnusableOutputError, SchemaFaultError, RecursionError):
        return "its schema is not a JSON Schema"
    if len(json.dumps(tool.input_schema)) > _MAX_SCHEMA_BYTES:
        return f"its schema is larger than {_MAX_SCHEMA_BYTES} bytes"
    return ""


def _redact_texts(value: Any, keyword: str = "") -> Any:  # noqa: ANN401 - a JSON Schema
    """Redact the texts of a schema, but not its structure and property names."""
    if isinstance(value, dict):
        return {key: _redact_texts(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_redact_texts(item, keyword) for item in value]
    is_prose = isinstance(value, str) and keyword not in _STRUCTURE
    return redact(value) if is_prose else value
