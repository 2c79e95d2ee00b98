"""The definition of a tool: its name, arguments, side effects and limits.

A call holds one of the slots of its tool, over all workers. The slot of a worker that dies is held
until its lease ends, and so is that of a call that timed out: its function may still be running.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol
from uuid import UUID, uuid4

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import Error, connections, transaction
from django.db.models import F, Q
from pydantic import BaseModel, JsonValue, ValidationError

from diagnostics.clock import DatabaseNow
from failsoft.expectations import expectation
from failsoft.plans.execution import (
    CallContext,
    ToolArgumentsError,
    ToolRefusedError,
    ToolTimeoutError,
)
from failsoft.plans.shapes import explain_unknown_key
from failsoft.plans.violations import quote
from plans.models.run import Run
from plans.models.tool import ToolSlot
from plans.tools.server_settings import native_name

# In addition to the tool's own time; the lease of a run is longer than both together.
LONGEST_WAIT_SECONDS = 20.0
_LEASE_MARGIN = timedelta(seconds=10)
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


@contextmanager
def holding_slot(name: str, limit: int, seconds: float, context: CallContext) -> Iterator[None]:
    """Hold one of `limit` slots for a call of at most `seconds`.

    Waits for one up to 20 s, and no longer than the run's deadline; then raises
    ToolRefusedError with the reason `tool_busy`.
    """
    holder = uuid4()
    lease = timedelta(seconds=seconds) + _LEASE_MARGIN
    if not _take(name, limit, holder, lease):
        _wait(name, limit, holder, lease, context)
    try:
        yield
    except ToolTimeoutError:
        raise
    except BaseException:
        _give_back(name, holder)
        raise
    else:
        _give_back(name, holder)


def _wait(name: str, limit: int, holder: UUID, lease: timedelta, context: CallContext) -> None:
    give_up_at = time.monotonic() + min(LONGEST_WAIT_SECONDS, _seconds_left(context))
    pause = _SHORTEST_PAUSE
    while time.monotonic() < give_up_at and not context.is_cancelled():
        # Jitter: waiting calls must not retry at the same moment.
        time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
        pause = min(2 * pause, _LONGEST_PAUSE)
        if _take(name, limit, holder, lease):
            return
    calls = "1 call" if limit == 1 else f"{limit} calls"
    raise ToolRefusedError("tool_busy", f"{name} is at its limit of {calls} at a time.")


def _seconds_left(context: CallContext) -> float:
    if not context.run_id:
        return LONGEST_WAIT_SECONDS
    run = Run.objects.filter(pk=context.run_id, deadline_at__isnull=False)
    remaining: timedelta | None = (
        run.annotate(remaining=F("deadline_at") - DatabaseNow())
        .values_list("remaining", flat=True)
        .first()
    )
    return LONGEST_WAIT_SECONDS if remaining is None else remaining.total_seconds()


def _take(name: str, limit: int, holder: UUID, lease: timedelta) -> bool:
    slots = ToolSlot.objects.filter(tool=name, number__lt=limit)
    free = Q(lease_until=None) | Q(lease_until__lt=DatabaseNow())
    with transaction.atomic():
        slot = slots.filter(free).order_by("number").select_for_update(skip_locked=True).first()
        if slot is not None:
            until = DatabaseNow() + lease
            slots.filter(pk=slot.pk).update(holder=holder, lease_until=until)
            return True
    return _add_slots(name, limit) and _take(name, limit, holder, lease)


def _add_slots(name: str, limit: int) -> bool:
    slots = ToolSlot.objects.filter(tool=name, number__lt=limit)
    if slots.count() >= limit:
        return False
    rows = [ToolSlot(tool=name, number=number) for number in range(limit)]
    ToolSlot.objects.bulk_create(rows, ignore_conflicts=True)
    return True


def _give_back(name: str, holder: UUID) -> None:
    slots = ToolSlot.objects.filter(tool=name, holder=holder)
    # The call was made, whatever becomes of its slot, whose lease ends by itself.
    with suppress(Error):
        slots.update(holder=None, lease_until=None)


logger = structlog.get_logger(__name__)
MOST_LEFT_BEHIND = 16
_Answer = tuple[bool, object]
# The name of threads whose call timed out, and which still run.
_LEFT_BEHIND = "tool-left-behind"


def call_within(seconds: float, function: Callable[[object], object], argument: object) -> object:
    """Call a function in a thread, and return or raise its result within `seconds`.

    Raises ToolTimeoutError after that. Python cannot stop a thread: a function that exceeds
    its limit keeps running in a daemon thread, and its result is dropped. While 16 such
    threads are alive in this process, further calls raise ToolRefusedError (`tool_busy`).
    """
    left_behind = [thread for thread in threading.enumerate() if thread.name == _LEFT_BEHIND]
    if len(left_behind) >= MOST_LEFT_BEHIND:
        logger.error("tools_left_behind", count=MOST_LEFT_BEHIND)
        text = f"{MOST_LEFT_BEHIND} timed-out calls are still running in this process."
        raise ToolRefusedError("tool_busy", text)
    answers: SimpleQueue[_Answer] = SimpleQueue()
    thread = threading.Thread(target=_answer, args=(answers, function, argument), daemon=True)
    thread.start()
    try:
        succeeded, value = answers.get(timeout=seconds)
    except Empty:
        thread.name = _LEFT_BEHIND
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
    except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
        answer = False, error
    # The tool may have opened database connections in this thread.
    connections.close_all()
    answers.put(answer)


PYTHON = "python"
_MAX_SHOWN_FAULTS = 5


class ArgumentFault(NamedTuple):
    """Why arguments do not match their schema: the place, a code and what was expected."""

    place: tuple[str | int, ...]
    code: str
    message: str


class Arguments(Protocol):
    """The arguments of a tool: their schema and validation."""

    def schema(self) -> dict[str, Any]: ...

    def check(self, args: Mapping[str, JsonValue]) -> Any:  # noqa: ANN401 - what the tool takes
        """Return the arguments as the tool takes them, or raise ToolArgumentsError."""
        ...

    def faults(self, args: Mapping[str, JsonValue]) -> list[ArgumentFault]:
        """Return what does not match, and the names that the tool would ignore."""
        ...


@dataclass(frozen=True, slots=True)
class ModelArguments:
    model: type[BaseModel]

    def schema(self) -> dict[str, Any]:
        return self.model.model_json_schema()

    def check(self, args: Mapping[str, JsonValue]) -> BaseModel:
        try:
            return self.model.model_validate(args)
        except ValidationError as error:
            raise refuse_arguments(_faults_of(error, args)) from None

    def faults(self, args: Mapping[str, JsonValue]) -> list[ArgumentFault]:
        """Return what does not match, and the names that the tool would ignore.

        A model that sets `extra` has decided about other names itself.
        """
        names = _names_of(self.model)
        faults = [
            ArgumentFault((name,), "extra_forbidden", explain_unknown_key(name, names))
            for name in ([] if "extra" in self.model.model_config else args)
            if name not in names
        ]
        try:
            self.model.model_validate(args)
        except ValidationError as error:
            faults += _faults_of(error, args)
        return faults


@cache
def _names_of(model: type[BaseModel]) -> frozenset[str]:
    names = model.model_json_schema().get("properties", {})
    return frozenset(names) | frozenset(model.model_fields)


def _faults_of(error: ValidationError, args: Mapping[str, JsonValue]) -> list[ArgumentFault]:
    return [
        ArgumentFault(fault["loc"], fault["type"], expectation(fault, value_at(args, fault["loc"])))
        for fault in error.errors(include_input=False, include_url=False)
    ]


def value_at(value: object, place: Iterable[str | int]) -> object:
    """Return the value at a place; parts that lead nowhere, as names of variants, are skipped."""
    for part in place:
        if isinstance(value, dict | list):
            with suppress(KeyError, IndexError, TypeError):
                value = value[part]  # type: ignore[index] # a part of the wrong type leads nowhere
    return value


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, its properties and its limits.

    `side_effects`: a call changes the outside world. `idempotent`: repeating a call with
    the same arguments has no further effect. `offered`: prompts of planners list it.
    `timeout_seconds`: None for a tool that bounds its own time. `max_concurrent`: the
    number of simultaneous calls over all workers; tools with equal `limited_as` share it.
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
    # The function enforces `timeout_seconds` itself, after `ready_seconds` of setup.
    bounds_itself: bool = False
    ready_seconds: float = 0.0

    @property
    def native_name(self) -> str:
        return native_name(self.name)

    def schema(self) -> dict[str, Any]:
        return self.arguments.schema()

    def call(self, args: Mapping[str, JsonValue], context: CallContext) -> object:
        """Check the arguments, wait for a slot if calls are limited, and run the tool.

        Raises ToolArgumentsError, ToolTimeoutError, ToolRefusedError with the reason
        `tool_busy` or `unknown_outcome`, or the exception of the tool.
        """
        checked = self.arguments.check(args)
        try:
            with self._holding_slot(context):
                return self._run(checked, context)
        except ToolTimeoutError as error:
            if self.idempotent or not self.side_effects:
                raise
            # Its function goes on, and may still have its effect.
            text = f"{error}, and its effect is unknown."
            raise ToolRefusedError("unknown_outcome", text) from None

    def _holding_slot(self, context: CallContext) -> AbstractContextManager[None]:
        if self.max_concurrent is None:
            return nullcontext()
        seconds = self.ready_seconds + (self.timeout_seconds or 0.0)
        return holding_slot(self.limited_as or self.name, self.max_concurrent, seconds, context)

    def _run(self, checked: object, context: CallContext) -> object:
        try:
            if self.timeout_seconds is None or self.bounds_itself:
                return self.run(checked, context)
            return call_within(
                self.timeout_seconds, lambda arguments: self.run(arguments, context), checked
            )
        except SoftTimeLimitExceeded:
            raise ToolTimeoutError("no answer within the time limit of its task") from None


def refuse_arguments(faults: Sequence[ArgumentFault]) -> ToolArgumentsError:
    """Return an error that names the invalid arguments, without their values."""
    messages = [
        f"{quote('.'.join(map(str, fault.place)) or 'args')}: {fault.message}"
        for fault in faults[: _MAX_SHOWN_FAULTS + 1]
    ]
    more = "; ..." if len(messages) > _MAX_SHOWN_FAULTS else ""
    shown = "; ".join(messages[:_MAX_SHOWN_FAULTS])
    return ToolArgumentsError(f"the arguments do not match the schema: {shown}{more}")
