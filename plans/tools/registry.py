"""The tools of this process, registered by decorator and called by name.

Only what is registered can be called, and only with arguments that fit the tool's own
schema (S29). A tool is an ordinary function of one pydantic model:

    class AddArgs(BaseModel):
        numbers: list[float]

    @tool("add", AddArgs, description="Add numbers.")
    def add(args: AddArgs) -> float:
        return sum(args.numbers)
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from plans.core.execution import ToolArgumentsError, ToolNotFoundError
from plans.core.violations import quote
from plans.tools.timeouts import call_within

_MAX_SHOWN_FAULTS = 5

Args = TypeVar("Args", bound=BaseModel)


class DuplicateToolError(Exception):
    """Two functions were registered under one name."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One registered function and what may be known of it before it is called.

    `side_effects`: the world outside is changed. `idempotent`: calling it again with
    the same arguments changes nothing more. `offered`: planners are told about it.
    `timeout_seconds`: None for a tool that bounds its own time.
    """

    name: str
    description: str
    args: type[BaseModel]
    run: Callable[[Any], object]
    side_effects: bool = False
    idempotent: bool = True
    offered: bool = True
    timeout_seconds: float | None = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return self.args.model_json_schema()

    def call(self, args: dict[str, JsonValue]) -> object:
        """Check the arguments and run; ToolArgumentsError when they do not fit."""
        try:
            checked = self.args.model_validate(args)
        except ValidationError as error:
            raise ToolArgumentsError(_explain(error)) from None
        if self.timeout_seconds is None:
            return self.run(checked)
        return call_within(self.timeout_seconds, self.run, checked)


_tools: dict[str, Tool] = {}


def tool(
    name: str,
    args: type[Args],
    *,
    description: str,
    side_effects: bool = False,
    idempotent: bool = True,
    offered: bool = True,
    timeout_seconds: float | None = None,
) -> Callable[[Callable[[Args], object]], Callable[[Args], object]]:
    """Register the decorated function under `name`; it stays callable as it is."""

    def register(function: Callable[[Args], object]) -> Callable[[Args], object]:
        if name in _tools:
            raise DuplicateToolError(name)
        _tools[name] = Tool(
            name=name,
            description=description,
            args=args,
            run=function,
            side_effects=side_effects,
            idempotent=idempotent,
            offered=offered,
            timeout_seconds=timeout_seconds,
        )
        return function

    return register


def registered_tools() -> dict[str, Tool]:
    """Return all tools by name."""
    return dict(_tools)


def offered_tools() -> list[Tool]:
    """Return the tools that planners are told about, by name."""
    return sorted((t for t in _tools.values() if t.offered), key=lambda t: t.name)


def nearest_tool(name: str) -> str | None:
    """Return the registered name most like this one, if any is like it."""
    return next(iter(difflib.get_close_matches(name[:100], _tools, n=1)), None)


def call_tool(name: str, args: dict[str, JsonValue]) -> object:
    """Call a tool by name: the executor's seam to the world.

    Raises ToolNotFoundError, ToolArgumentsError, ToolTimeoutError, or whatever the tool
    raises.
    """
    found = _tools.get(name)
    if found is None:
        raise ToolNotFoundError(name)
    return found.call(args)


def _explain(error: ValidationError) -> str:
    """Say which arguments do not fit, without repeating their values."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    shown = "; ".join(
        f"{quote('.'.join(map(str, fault['loc'])) or 'args')}: {fault['msg']}"
        for fault in faults[:_MAX_SHOWN_FAULTS]
    )
    more = "; ..." if len(faults) > _MAX_SHOWN_FAULTS else ""
    return f"the arguments do not fit: {shown}{more}"
