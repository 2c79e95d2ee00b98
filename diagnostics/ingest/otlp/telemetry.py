"""The parts of spans and log records that events need, in any encoding."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

from failsoft.identifiers import EPOCH

Value: TypeAlias = "str | bool | int | float | list[Value] | dict[str, Value] | None"
Attributes: TypeAlias = "Mapping[str, Value]"

MAX_ITEMS = 10_000
MAX_VALUES = 20_000
MICROSECOND = timedelta(microseconds=1)


def time_of(nanoseconds: int) -> datetime:
    return EPOCH + nanoseconds // 1000 * MICROSECOND


def nanoseconds_of(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND * 1000


class MalformedError(ValueError):
    """The body is not valid OTLP; the text says where and why."""


class TooManyError(ValueError):
    """more spans or log records than one request may bring"""


class TooManyValuesError(ValueError):
    """more attribute values, or bytes, than one may have"""


@dataclass(frozen=True, slots=True)
class UnreadItem:
    """A span, a log record or a part of the request that cannot be read, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class SpanEvent:
    name: str
    attributes: Attributes
    at_ns: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """One unit of work; ids in lower-case hex, times in nanoseconds since 1970."""

    trace_id: str
    span_id: str
    name: str
    started_ns: int
    ended_ns: int
    resource: Attributes
    attributes: Attributes
    is_error: bool = False
    events: tuple[SpanEvent, ...] = ()
    # Attributes outside the known set, of the span and of its events.
    dropped: int = 0
    parent_id: str = ""
    # The name of the instrumentation that wrote it.
    scope: str = ""
    # The text beside its status: read to find out why a call failed, and not kept.
    status_message: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One log record; its ids are empty when it was written outside of any span."""

    trace_id: str
    span_id: str
    name: str
    at_ns: int
    resource: Attributes
    attributes: Attributes
    body: Value = None
    dropped: int = 0
    scope: str = ""


class CallPlace(NamedTuple):
    """Where and when a call was made, and which instrumentation reported it."""

    trace_id: str
    span_id: str
    parent_id: str
    started_ns: int
    ended_ns: int
    scope: str
    response_id: str | None = None
    # Service, model and kind of error of a failed call whose response is not named.
    failure: str | None = None
    # Whether nothing of an answer is reported but an error.
    has_failed: bool = False


@dataclass(slots=True)
class ValueBudget:
    """How many more values an item may have."""

    remaining: int = field(default=MAX_VALUES)

    def spend(self) -> None:
        self.remaining -= 1
        if self.remaining < 0:
            raise TooManyValuesError(TooManyValuesError.__doc__)
