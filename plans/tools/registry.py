"""The tools that plans can call, registered by decorator or discovered on a server.

Only what is registered can be called, and only with arguments that fit the tool's own
schema (S29). A tool is an ordinary function of one pydantic model, and, if it wants to
know which call it serves, of a CallContext:

    class AddArgs(BaseModel):
        numbers: list[float]

    @tool("add", AddArgs, description="Add numbers.")
    def add(args: AddArgs) -> float:
        return sum(args.numbers)
"""

import difflib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue

from plans.core.execution import CallContext, ToolNotFoundError, ToolRefusedError
from plans.core.violations import quote
from plans.tools.allowing import denied_tools
from plans.tools.definition import ModelArguments, Tool
from plans.tools.mcp.catalogue import find_mcp_tool, mcp_tools

Function = TypeVar("Function", bound=Callable[..., object])


class DuplicateToolError(Exception):
    """Two functions were registered under one name."""


class UnboundedToolError(Exception):
    """A tool with a limit of calls needs timeout_seconds: a call must end some time."""


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
        _tools[name] = Tool(
            name=name,
            description=description,
            arguments=ModelArguments(args),
            run=_taking_context(function),
            side_effects=side_effects,
            idempotent=idempotent,
            offered=offered,
            timeout_seconds=timeout_seconds,
            max_concurrent=max_concurrent,
        )
        return function

    return register


def registered_tools() -> dict[str, Tool]:
    """Return all tools by name; a Python function wins over a server's tool."""
    return mcp_tools() | _tools


def offered_tools(project_id: int | None = None) -> list[Tool]:
    """Return the tools that planners of a project are told about, by name."""
    denied = denied_tools(project_id)
    offered = (found for found in registered_tools().values() if found.offered)
    return sorted(
        (found for found in offered if found.name not in denied),
        key=lambda found: found.name,
    )


def nearest_tool(name: str) -> str | None:
    """Return the registered name most like this one, if any is like it."""
    known = registered_tools()
    return next(iter(difflib.get_close_matches(name[:100], known, n=1)), None)


def find_tool(name: str) -> Tool | None:
    """Return the tool of this name; a server's tool also by its native name."""
    return _tools.get(name) or find_mcp_tool(name)


def call_tool(name: str, args: dict[str, JsonValue], context: CallContext | None = None) -> object:
    """Call a tool by name: the executor's seam to the world.

    Raises ToolNotFoundError, ToolArgumentsError, ToolTimeoutError, ToolRefusedError
    (`tool_not_allowed`, `tool_busy`, and those of MCP servers), or whatever the tool
    raises.
    """
    call = context or CallContext()
    found = find_tool(name)
    if found is None:
        raise ToolNotFoundError(name)
    if found.name in denied_tools(call.project_id):
        text = f"Tool {quote(found.name)} is not allowed in this project."
        raise ToolRefusedError("tool_not_allowed", text)
    return found.call(args, call)


def _taking_context(
    function: Callable[..., object],
) -> Callable[[Any, CallContext], object]:
    if len(inspect.signature(function).parameters) > 1:
        return function
    return lambda args, _context: function(args)
