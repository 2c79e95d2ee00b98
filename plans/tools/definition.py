"""A tool: its name, what it wants, what it does to the world, and how it is called."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import structlog
from django.db import connections
from pydantic import BaseModel, JsonValue, ValidationError

from failsoft.plans.execution import (
    CallContext,
    ToolArgumentsError,
    ToolRefusedError,
    ToolTimeoutError,
)
from failsoft.plans.violations import quote
from plans.tools.limits import holding_slot
from plans.tools.server_settings import native_name

logger = structlog.get_logger(__name__)
MOST_LEFT_BEHIND = 16
_Answer = tuple[bool, object]


class _LeftBehind:
    """Calls of this process whose time was over and which go on all the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.threads: set[threading.Thread] = set()

    def add(self, thread: threading.Thread) -> None:
        with self._lock:
            self.threads.add(thread)

    def count(self) -> int:
        with self._lock:
            self.threads = {thread for thread in self.threads if thread.is_alive()}
            return len(self.threads)


_left_behind = _LeftBehind()


def call_within(seconds: float, function: Callable[[object], object], argument: object) -> object:
    """Return what the function returns, or raise what it raises, within the time.

    Raises ToolTimeoutError after that. Python cannot stop a thread: a function that
    ignores its limit goes on in a daemon thread whose answer nobody reads. While 16
    such threads live in this process, ToolRefusedError (`tool_busy`) is raised instead
    of a further call.
    """
    if _left_behind.count() >= MOST_LEFT_BEHIND:
        logger.error("tools_left_behind", count=MOST_LEFT_BEHIND)
        text = f"{MOST_LEFT_BEHIND} timed-out calls are still running in this process."
        raise ToolRefusedError("tool_busy", text)
    answers: SimpleQueue[_Answer] = SimpleQueue()
    thread = threading.Thread(target=_answer, args=(answers, function, argument), daemon=True)
    thread.start()
    try:
        succeeded, value = answers.get(timeout=seconds)
    except Empty:
        _left_behind.add(thread)
        raise ToolTimeoutError(f"no answer within {seconds:g} s") from None
    if not succeeded:
        assert isinstance(value, BaseException)  # noqa: S101 - _answer puts nothing else
        raise value
    return value


def _answer(
    answers: SimpleQueue[_Answer], function: Callable[[object], object], argument: object
) -> None:
    try:
        answer: _Answer = True, function(argument)
    except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
        answer = False, error
    # A tool may have asked the database, in this thread's own connection.
    connections.close_all()
    answers.put(answer)


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


def refuse_arguments(faults: Sequence[tuple[Iterable[str], str]]) -> ToolArgumentsError:
    """Say which arguments do not fit, without repeating their values."""
    told = [
        f"{quote('.'.join(place) or 'args')}: {text}"
        for place, text in faults[: _MAX_SHOWN_FAULTS + 1]
    ]
    more = "; ..." if len(told) > _MAX_SHOWN_FAULTS else ""
    shown = "; ".join(told[:_MAX_SHOWN_FAULTS])
    return ToolArgumentsError(f"the arguments do not match the schema: {shown}{more}")
