"""The discovered tools of MCP servers, as callable tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils.module_loading import import_string
from pydantic import JsonValue

from diagnostics.ingest.schemas import OverBudgetError, SchemaFaultError, check, read_schema
from failsoft.plans.execution import CallContext, ToolArgumentsError
from plans.models.tool import McpTool
from plans.tools.definition import ArgumentFault, Tool, refuse_arguments
from plans.tools.mcp.health import RemoteTool, configured_servers
from plans.tools.server_settings import ServerSettings


@dataclass(frozen=True, slots=True)
class SchemaArguments:
    """Arguments described by the schema of a server; `digest` identifies the schema."""

    json_schema: Mapping[str, Any] = field(compare=False)
    digest: str

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema as it was discovered."""
        return dict(self.json_schema)

    def check(self, args: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """Return the arguments as they are, or raise ToolArgumentsError."""
        if faults := self.faults(args):
            raise refuse_arguments(faults)
        return args

    def faults(self, args: Mapping[str, JsonValue]) -> list[ArgumentFault]:
        """Return what does not match; ToolArgumentsError if the schema cannot be resolved."""
        try:
            schema = read_schema(self.json_schema, is_ours=False)
            faults = check(schema.nodes, args)
        except (SchemaFaultError, OverBudgetError, RecursionError):
            raise ToolArgumentsError("the server's schema cannot be resolved") from None
        return [
            ArgumentFault(tuple(fault.place.segments), fault.code, fault.message)
            for fault in faults
        ]


def mcp_tools() -> dict[str, Tool]:
    """Return all discovered tools of configured servers by name."""
    servers = configured_servers()
    return {row.name: _tool(row, servers) for row in _rows(servers)} if servers else {}


def find_mcp_tool(name: str) -> Tool | None:
    """Return the tool of this name or native name, if it was discovered."""
    server, _, rest = name.partition("." if "." in name else "__")
    servers = configured_servers() if rest else {}
    if server not in servers:
        return None
    row = _rows(servers).filter(name=f"{server}.{rest}").first()
    return None if row is None else _tool(row, servers)


def _rows(servers: Mapping[str, ServerSettings]) -> QuerySet[McpTool]:
    return McpTool.objects.filter(server__name__in=servers).select_related("server")


def _tool(row: McpTool, servers: Mapping[str, ServerSettings]) -> Tool:
    server = row.server.name
    settings = servers[server]
    overrides = settings.settings_of(row.remote_name)
    seconds = overrides.timeout_seconds or settings.timeout_seconds
    side_effects = _override(overrides.side_effects, row.side_effects)
    idempotent = _override(overrides.idempotent, row.idempotent)
    remote = RemoteTool(
        server=server,
        name=row.name,
        remote_name=row.remote_name,
        digest=row.digest,
        settings=settings,
        seconds=seconds,
        repeatable=idempotent or not side_effects,
    )
    return Tool(
        name=row.name,
        description=row.description,
        arguments=SchemaArguments(row.input_schema, row.digest),
        run=partial(_call, remote),
        side_effects=side_effects,
        idempotent=idempotent,
        offered=overrides.offered,
        timeout_seconds=seconds,
        max_concurrent=overrides.max_concurrent or settings.max_concurrent,
        limited_as="" if overrides.max_concurrent else f"{server}.*",
        source=f"mcp:{server}",
        bounds_itself=True,
        ready_seconds=settings.timeout_seconds,
    )


def _override(override: bool | None, default: bool) -> bool:
    return default if override is None else override


def _call(remote: RemoteTool, args: Mapping[str, JsonValue], context: CallContext) -> Any:  # noqa: ANN401 - JSON
    # Imported here, so that a process that calls no server never loads the SDK.
    return import_string("plans.tools.mcp.calling.call_remote")(remote, args, context)
