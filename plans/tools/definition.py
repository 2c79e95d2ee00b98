"""A tool: its name, what it wants, what it does to the world, and how it is called."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, JsonValue, ValidationError

from plans.core.execution import CallContext, ToolArgumentsError
from plans.core.mcp_servers import native_name
from plans.core.violations import quote
from plans.tools.limiting import holding_slot
from plans.tools.timeouts import call_within

PYTHON = "python"
_MAX_SHOWN_FAULTS = 5


class Arguments(Protocol):
    """What a tool wants to be called with."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema."""
        ...

    def check(self, args: Mapping[str, JsonValue]) -> Any:  # noqa: ANN401 - what the tool takes
        """Return the arguments as the tool takes them, or raise ToolArgumentsError."""
        ...


@dataclass(frozen=True, slots=True)
class ModelArguments:
    """Arguments described by a pydantic model."""

    model: type[BaseModel]

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the model."""
        return self.model.model_json_schema()

    def check(self, args: Mapping[str, JsonValue]) -> BaseModel:
        """Return an instance of the model."""
        try:
            return self.model.model_validate(args)
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False, include_context=False)
            faults = [(map(str, fault["loc"]), fault["msg"]) for fault in found]
            raise refuse_arguments(faults) from None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and what may be known of it before it is called.

    `side_effects`: the world outside is changed. `idempotent`: calling it again with
    the same arguments changes nothing more. `offered`: planners are told about it.
    `timeout_seconds`: None for a tool that bounds its own time. `max_concurrent`: how
    many calls there are at a time, over all workers; `limited_as` shares that limit.
    `source`: `python`, or `mcp:<server>`.
    """

    name: str
    description: str
    arguments: Arguments
    run: Callable[[Any, CallContext], object] = field(compare=False)
    side_effects: bool = False
    idempotent: bool = True
    offered: bool = True
    timeout_seconds: float | None = None
    max_concurrent: int | None = None
    limited_as: str = ""
    source: str = PYTHON
    # Its function ends within `timeout_seconds` by itself, after getting ready.
    bounds_itself: bool = False
    ready_seconds: float = 0.0

    @property
    def native_name(self) -> str:
        """The name as a provider's native tool calls can carry it."""
        return native_name(self.name)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return self.arguments.schema()

    def call(self, args: Mapping[str, JsonValue], context: CallContext) -> object:
        """Check the arguments, wait for a turn where there is a limit, and run.

        Raises ToolArgumentsError, ToolTimeoutError, ToolRefusedError with the reason
        `tool_busy`, or whatever the tool raises.
        """
        checked = self.arguments.check(args)
        if self.max_concurrent is None:
            return self._run(checked, context)
        limited_as = self.limited_as or self.name
        seconds = self.ready_seconds + (self.timeout_seconds or 0.0)
        with holding_slot(limited_as, self.max_concurrent, seconds, context):
            return self._run(checked, context)

    def _run(self, checked: object, context: CallContext) -> object:
        if self.timeout_seconds is None or self.bounds_itself:
            return self.run(checked, context)
        return call_within(self.timeout_seconds, lambda given: self.run(given, context), checked)


def refuse_arguments(
    faults: Sequence[tuple[Iterable[str], str]],
) -> ToolArgumentsError:
    """Say which arguments do not fit, without repeating their values."""
    told = [
        f"{quote('.'.join(place) or 'args')}: {text}"
        for place, text in faults[: _MAX_SHOWN_FAULTS + 1]
    ]
    more = "; ..." if len(told) > _MAX_SHOWN_FAULTS else ""
    shown = "; ".join(told[:_MAX_SHOWN_FAULTS])
    return ToolArgumentsError(f"the arguments do not fit: {shown}{more}")
