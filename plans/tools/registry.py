"""The tools that plans can call, registered by decorator or discovered on a server.

Only registered tools can be called, and only with arguments that match their schema. A
tool is a function that takes a pydantic model and, optionally, a CallContext:

    class AddArgs(BaseModel):
        numbers: list[float]

    @tool("add", AddArgs, description="Add numbers.")
    def add(args: AddArgs) -> float:
        return sum(args.numbers)

A planner's calls are checked before its plan is accepted. References to steps and to secrets count
as of any type there: their values are known in execution only.
"""

import difflib
import inspect
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeVar

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.utils.module_loading import import_string
from pydantic import BaseModel, JsonValue

from diagnostics.accounts.audit_log import Actor, identity_of, note
from diagnostics.clock import DatabaseNow
from diagnostics.ingest.schemas import OverBudgetError, SchemaFaultError, check, read_schema
from failsoft.json_values import pointer_of
from failsoft.plans.execution import (
    CallContext,
    ToolArgumentsError,
    ToolNotFoundError,
    ToolRefusedError,
)
from failsoft.plans.ordering import referenced_step
from failsoft.plans.validation import TOOL_UNKNOWN, explain_unknown_tool
from failsoft.plans.violations import Violation, quote
from failsoft.retry.judging import CallCheck
from plans.models.tool import McpServer, McpTool, ProjectToolPolicy
from plans.tools.definition import ArgumentFault, ModelArguments, Tool, refuse_arguments, value_at
from plans.tools.mcp.health import RemoteTool, configured_servers
from plans.tools.server_settings import ServerSettings, ToolSettings, is_reference


@dataclass(frozen=True, slots=True)
class SchemaArguments:
    """Arguments described by the schema of a server; `digest` identifies the schema."""

    json_schema: Mapping[str, Any] = field(compare=False)
    digest: str

    def schema(self) -> dict[str, Any]:
        return dict(self.json_schema)

    def check(self, args: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
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
    servers = configured_servers()
    return {row.name: _tool(row, servers) for row in _rows(servers)} if servers else {}


def find_mcp_tool(name: str) -> Tool | None:
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
    overrides = settings.tools.get(row.remote_name, ToolSettings())
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


# Every process sees a change of the policy within this time.
_BELIEVED_SECONDS = 1.0
_read_at: dict[int, tuple[float, frozenset[str]]] = {}
_NEVER: tuple[float, frozenset[str]] = (float("-inf"), frozenset())


def denied_tools(project_id: int | None) -> frozenset[str]:
    """Return the names a project may not call; none outside of a project."""
    if project_id is None:
        return frozenset()
    read_at, denied = _read_at.get(project_id, _NEVER)
    if time.monotonic() - read_at < _BELIEVED_SECONDS:
        return denied
    rows = ProjectToolPolicy.objects.filter(project_id=project_id, allowed=False)
    denied = frozenset(rows.values_list("tool", flat=True))
    _read_at[project_id] = (time.monotonic(), denied)
    return denied


def set_allowed(project_id: int, tool: str, *, allowed: bool, by: Actor = None) -> None:
    """Allow or deny a tool in a project, with an audit entry; running steps are not stopped."""
    user_id, _ = identity_of(by)
    with transaction.atomic():
        ProjectToolPolicy.objects.update_or_create(
            project_id=project_id,
            tool=tool,
            defaults={"allowed": allowed, "changed_by_id": user_id, "changed_at": DatabaseNow()},
        )
        note(project_id, by, "tool.allowed" if allowed else "tool.denied", tool)
    _read_at.pop(project_id, None)


Function = TypeVar("Function", bound=Callable[..., object])


class DuplicateToolError(Exception):
    """Two functions were registered under one name."""


class UnboundedToolError(Exception):
    """A tool with `max_concurrent` needs `timeout_seconds`, so that every call ends."""


_tools: dict[str, Tool] = {}


def tool(
    name: str,
    args: type[BaseModel],
    *,
    description: str,
    side_effects: bool = False,
    idempotent: bool = True,
    offered: bool = True,
    timeout_seconds: float | None = None,
    max_concurrent: int | None = None,
) -> Callable[[Function], Function]:
    """Register the decorated function under `name`; it stays callable as it is.

    The function takes the arguments, and a CallContext if it has a second parameter.
    """

    def register(function: Function) -> Function:
        if name in _tools:
            raise DuplicateToolError(name)
        if max_concurrent is not None and timeout_seconds is None:
            raise UnboundedToolError(name)
        takes_context = len(inspect.signature(function).parameters) > 1
        _tools[name] = Tool(
            name=name,
            description=description,
            arguments=ModelArguments(args),
            run=function if takes_context else lambda args, _context: function(args),
            side_effects=side_effects,
            idempotent=idempotent,
            offered=offered,
            timeout_seconds=timeout_seconds,
            max_concurrent=max_concurrent,
        )
        return function

    return register


def registered_tools() -> dict[str, Tool]:
    """Return all tools by name; a Python tool takes precedence over that of a server."""
    return mcp_tools() | _tools


def offered_tools(project_id: int | None = None) -> list[Tool]:
    denied = denied_tools(project_id)
    tools = sorted(registered_tools().items())
    return [tool for name, tool in tools if tool.offered and name not in denied]


def nearest_tool(name: str, among: Collection[str] | None = None) -> str | None:
    """Return the registered name, or one of those given, that is most similar, if any is."""
    names = registered_tools() if among is None else among
    return next(iter(difflib.get_close_matches(name[:100], names, n=1)), None)


def find_tool(name: str) -> Tool | None:
    """Return the tool of this name; a server's tool also by its native name."""
    return _tools.get(name) or find_mcp_tool(name)


def call_tool(name: str, args: dict[str, JsonValue], context: CallContext | None = None) -> object:
    """Call a tool by name: the executor's seam to the world.

    Raises ToolNotFoundError, ToolArgumentsError, ToolTimeoutError, ToolRefusedError
    (`tool_not_allowed`, `tool_busy`, and those of MCP servers), or the exception of the
    tool.
    """
    call = context or CallContext()
    tool = find_tool(name)
    if tool is None:
        raise ToolNotFoundError(name)
    if tool.name in denied_tools(call.project_id):
        text = f"Tool {quote(tool.name)} is not allowed in this project."
        raise ToolRefusedError("tool_not_allowed", text)
    return tool.call(args, call)


@dataclass(frozen=True, slots=True)
class ListedTool:
    tool: Tool
    allowed: bool


@dataclass(frozen=True, slots=True)
class ListedServer:
    name: str
    transport: str
    seen: McpServer
    tools: int

    @property
    def state(self) -> str:
        if self.seen.seen_at is None and not self.seen.last_error:
            return "not_asked"
        return "failing" if self.seen.last_error else "ok"


def list_tools(project_id: int) -> Sequence[ListedTool]:
    denied = denied_tools(project_id)
    tools = sorted(registered_tools().values(), key=lambda tool: (tool.source, tool.name))
    return [ListedTool(tool, tool.name not in denied) for tool in tools]


def list_servers(tools: Sequence[ListedTool]) -> Sequence[ListedServer]:
    servers = configured_servers()
    if not servers:
        return []
    rows = {row.name: row for row in McpServer.objects.filter(name__in=servers)}
    sources = [listed.tool.source for listed in tools]
    return [
        ListedServer(
            name,
            settings.transport,
            # Without a row the server was not contacted yet.
            rows.get(name, McpServer()),
            sources.count(f"mcp:{name}"),
        )
        for name, settings in sorted(servers.items())
    ]


logger = structlog.get_logger(__name__)

MISSING, UNKNOWN, INVALID = "argument_missing", "argument_unknown", "argument_invalid"
# All other codes mean that a value does not fit.
_CODES = {"missing": MISSING, "extra_forbidden": UNKNOWN}


def call_check(only: Collection[str] | None = None) -> CallCheck:
    """Return a check of calls that looks up each tool once.

    Of the registered tools all are known, or `only` some by name.
    """
    find = cache(find_tool)

    def check(name: str, args: Mapping[str, Any]) -> Sequence[Violation]:
        tool = find(name)
        if tool is None or (only is not None and tool.name not in only):
            known = registered_tools() if only is None else only
            return [Violation("", TOOL_UNKNOWN, explain_unknown_tool(name, known))]
        return [
            Violation(pointer_of(fault.place), _CODES.get(fault.code, INVALID), fault.message)
            for fault in _faults(tool, args)
            if fault.code in _CODES or not _refers(value_at(args, fault.place))
        ]

    return check


def _faults(tool: Tool, args: Mapping[str, Any]) -> Sequence[ArgumentFault]:
    try:
        return tool.arguments.faults(args)
    except Exception:
        # A validator of somebody's tool; its step will say so when it runs.
        logger.exception("arguments_unchecked", tool=tool.name)
        return ()


def _refers(value: object) -> bool:
    if isinstance(value, str):
        return referenced_step(value) is not None or is_reference(value)
    if isinstance(value, Mapping):
        return any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))
