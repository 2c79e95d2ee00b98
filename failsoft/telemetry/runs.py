"""A run: the calls of a block or of a function are attempts at one answer.

Without `init`, and without OpenTelemetry, everything here does nothing; no error of telemetry
reaches the host.
"""

import inspect
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from pydantic import BaseModel, TypeAdapter, ValidationError

from failsoft.events import ParseErrorType
from failsoft.expectations import expectation
from failsoft.json_values import pointer_of
from failsoft.parsing import RefusedAnswer

LOG = logging.getLogger("failsoft")
NOT_IN_NODE = re.compile(r"[^a-z0-9_-]+")
MAX_NODE = 63
# Instructor and pydantic-ai raise errors of their own because of those of pydantic.
MAX_CAUSES = 8
MAX_TOLD, MAX_MESSAGE = 20, 500
INVALID = (RefusedAnswer, ValidationError, json.JSONDecodeError)

P = ParamSpec("P")
R = TypeVar("R")


class OpenRun(Protocol):
    def mark(self, attributes: Mapping[str, str]) -> None:
        """Add attributes to the latest call that has ended."""

    def end(self, error: BaseException | None) -> None:
        """End it."""


class Sending(Protocol):
    """What `init` has set up."""

    def begin(self, node: str | None, attributes: Mapping[str, str]) -> OpenRun:
        """Begin a run inside the current one, if there is one."""

    def register(self, node: str, schema: object) -> None:
        """Register the schema of a node, once."""

    def flush(self) -> None:
        """Send what is kept."""


@dataclass(slots=True)
class _Current:
    sending: Sending | None = None


_current = _Current()
_within: ContextVar[tuple[OpenRun | None, ...]] = ContextVar("failsoft.within", default=())


def send_with(sending: Sending | None) -> None:
    """Let every run from now on be sent by this; by nothing with None."""
    _current.sending = sending


def is_sending() -> bool:
    return _current.sending is not None


def flush() -> None:
    """Send now what is kept, but for the latest call of an open run."""
    with harmless("sending what is kept"):
        if _current.sending is not None:
            _current.sending.flush()


@contextmanager
def harmless(task: str) -> Iterator[None]:
    """Log an error of telemetry instead of raising it into the host."""
    try:
        yield
    except Exception:
        LOG.warning("failsoft: %s failed", task, exc_info=True)


@dataclass(eq=False, slots=True)
class RunScope:
    """The attempts at one answer: `with`, `async with`, or a decorator of a function.

    `schema` is a model of pydantic, another type that pydantic knows, or a JSON Schema.
    """

    node: str | None = None
    prompt_version: str | None = None
    schema: Any = None
    correlation_id: str | None = None
    _open: list[OpenRun | None] = field(default_factory=list, init=False, repr=False)

    def __enter__(self) -> "RunScope":
        start = None
        with harmless("beginning a run"):
            start = self._begin()
        self._open.append(start)
        _within.set((*_within.get(), start))
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """End; an error that says why the answer is invalid is told with its places."""
        with harmless("ending a run"):
            cause = _invalid_cause(error)
            if cause is not None:
                self.invalid(cause)
            run = self._latest()
            self._open.remove(run)
            _within.set(tuple(other for other in _within.get() if other is not run))
            if run is not None:
                run.end(error)

    async def __aenter__(self) -> "RunScope":
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.__exit__(kind, error, traceback)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return the function as a run a call; its name is the node if none is given."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            LOG.warning("failsoft: a generator is no run; write `with failsoft.run(...)` in it")
            return cast("Callable[P, R]", function)

        def fresh() -> RunScope:
            name = self.node or function.__name__
            return RunScope(name, self.prompt_version, self.schema, self.correlation_id)

        if inspect.iscoroutinefunction(function):
            awaited = cast("Callable[P, Awaitable[Any]]", function)

            @wraps(function)
            async def call_async(*args: P.args, **named: P.kwargs) -> Any:  # noqa: ANN401 - R
                with fresh():
                    return await awaited(*args, **named)

            return cast("Callable[P, R]", call_async)

        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            with fresh():
                return function(*args, **named)

        return call

    def invalid(self, error: object) -> None:
        """Tell that the answer of the latest call is invalid, and why.

        `error` is what `recover` refused, an exception, or a sentence.
        """
        with harmless("telling an error"):
            run = self._latest() if self._open else None
            if run is not None:
                run.mark(_marks_of(error))

    def _latest(self) -> OpenRun | None:
        """Return what this thread or task began last; a generator may end in another one."""
        within = _within.get()
        return next((run for run in reversed(self._open) if run in within), self._open[-1])

    def _begin(self) -> OpenRun | None:
        sending = _current.sending
        if sending is None:
            return None
        schema = None
        with harmless("reading the schema of a run"):
            schema = _schema_of(self.schema)
        title = schema.get("title") if isinstance(schema, dict) else None
        node = _node_of(self.node or (title if isinstance(title, str) else ""))
        if node and schema is not None:
            sending.register(node, schema)
        attributes = {
            "failsoft.node": node,
            "failsoft.prompt_version": self.prompt_version,
            "failsoft.correlation_id": self.correlation_id,
        }
        return sending.begin(node, {name: str(text) for name, text in attributes.items() if text})


@overload
def run(node: Callable[P, R]) -> Callable[P, R]: ...
@overload
def run(
    node: str | None = None,
    *,
    prompt_version: str | None = None,
    schema: Any = None,  # noqa: ANN401 - a model, a type or a JSON Schema
    correlation_id: str | None = None,
) -> RunScope: ...
def run(node: Any = None, **options: Any) -> Any:
    """Return a run: every call of a model inside is an attempt at one answer of `node`.

    `@failsoft.run` decorates a function without parentheses, too.
    """
    return RunScope()(node) if callable(node) else RunScope(node, **options)


def _node_of(name: str) -> str | None:
    slug = NOT_IN_NODE.sub("_", name.lower()).strip("_")
    return (slug if slug[:1].isalpha() else f"n_{slug}")[:MAX_NODE] if slug else None


def _schema_of(schema: Any) -> Any:  # noqa: ANN401 - as `run` takes it
    if schema is None or isinstance(schema, dict):
        return schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_json_schema()
    return TypeAdapter(schema).json_schema()


def _invalid_cause(error: BaseException | None) -> BaseException | None:
    """Return the error in the chain that says why an answer is invalid."""
    for _ in range(MAX_CAUSES):
        if error is None or isinstance(error, INVALID):
            return error
        error = error.__cause__ or error.__context__
    return None


def _marks_of(error: object) -> dict[str, str]:
    kind = ParseErrorType.SCHEMA_INVALID
    errors: Sequence[Mapping[str, Any]] = [{"message": str(error)}]
    if isinstance(error, RefusedAnswer):
        kind = error.error_type
        errors = [item.model_dump(exclude_none=True) for item in error.errors]
    elif isinstance(error, ValidationError):
        faults = error.errors(include_input=False, include_url=False)
        is_json = all(fault["type"] == "json_invalid" for fault in faults)
        kind = ParseErrorType.NOT_JSON if is_json else kind
        errors = [
            {"path": pointer_of(one["loc"]), "code": one["type"], "message": expectation(one)}
            for one in faults
        ]
    elif isinstance(error, json.JSONDecodeError):
        kind = ParseErrorType.NOT_JSON
        errors = [{"message": error.msg, "line": error.lineno, "column": error.colno}]
    items = [{**item, "message": str(item["message"])[:MAX_MESSAGE]} for item in errors[:MAX_TOLD]]
    return {
        "failsoft.parse_error_type": kind.value,
        "failsoft.validation_errors": json.dumps(items),
    }
