"""The parts of spans and log records that events need, in any encoding."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from typing import NamedTuple, TypeAlias

from failsoft.identifiers import EPOCH

Value: TypeAlias = "str | bool | int | float | list[Value] | dict[str, Value] | None"
Attributes: TypeAlias = "Mapping[str, Value]"

MAX_ITEMS = 10_000
MAX_VALUES = 20_000
MICROSECOND = timedelta(microseconds=1)
MILLISECOND_NS = 1_000_000
# Spans of one call are nested, up to the difference of two clocks of one process.
SLACK_NS = 100 * MILLISECOND_NS
# The time one instrumentation takes before the other begins, and after it ends.
TOGETHER_NS = 250 * MILLISECOND_NS


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

    def is_same_call(self, other: "CallPlace") -> bool:
        """Whether two spans report the same call.

        1. One instrumentation reports a call twice only if one span is the other's parent: a method
           of a framework calls that of its base class, and both begin and end together; or a call
           was tried several times, all failed, and it ends with the last one.
        2. Both name the provider's response: it must be the same one, at the same time. The traces
           may differ.
        3. Otherwise they are in one trace, or both failed in the same way for the same service and
           model, and begin and end together; or one is the other's parent, and both end together.
        """
        inner, around = (other, self) if self.span_id == other.parent_id else (self, other)
        is_near, is_other = self.distance_ns(other) < inf, self.scope != other.scope
        is_last = abs(self.ended_ns - other.ended_ns) <= TOGETHER_NS
        is_tried = around.has_failed if inner.has_failed else is_other or is_near
        is_nested = inner.is_below(around) and is_last and is_tried
        if not is_other:
            return is_nested
        if self.response_id is not None and other.response_id is not None:
            return self.response_id == other.response_id and self._overlaps(other)
        is_failure = self.failure is not None and self.failure == other.failure
        return (
            (self.trace_id == other.trace_id or is_failure)
            and self._overlaps(other)
            and (is_nested or is_near)
        )

    def is_below(self, around: "CallPlace") -> bool:
        return (self.trace_id, self.parent_id) == (around.trace_id, around.span_id)

    def distance_ns(self, other: "CallPlace") -> float:
        """Return how far apart two spans begin and end, in nanoseconds; infinite if too far."""
        begin, end = abs(self.started_ns - other.started_ns), abs(self.ended_ns - other.ended_ns)
        return begin + end if max(begin, end) <= TOGETHER_NS else inf

    def _overlaps(self, other: "CallPlace") -> bool:
        begin, end = max(self.started_ns, other.started_ns), min(self.ended_ns, other.ended_ns)
        return begin <= end + SLACK_NS


@dataclass(slots=True)
class ValueBudget:
    """How many more values an item may have."""

    remaining: int = field(default=MAX_VALUES)

    def spend(self) -> None:
        self.remaining -= 1
        if self.remaining < 0:
            raise TooManyValuesError(TooManyValuesError.__doc__)
