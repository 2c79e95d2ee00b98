"""Events in the wire format: one schema for sender and server (docs/http-api.md)."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Literal, LiteralString, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from failsoft.json_values import pointer_of

NEAREST_TOOL = "nearest"
"""The attribute of an unknown tool with the most similar registered name."""
MAX_ERRORS = 100
MAX_ATTRIBUTES = 32
MAX_INTEGER = 2**31 - 1
EARLIEST_YEAR = 1970
LATEST_YEAR = 2200


class ParseErrorType(StrEnum):
    """Why an answer could not be parsed; unknown reasons are counted as `other`."""

    NOT_JSON = "not_json"
    SCHEMA_INVALID = "schema_invalid"
    EMPTY_OUTPUT = "empty_output"
    TRUNCATED = "truncated"
    MULTIPLE_OBJECTS = "multiple_objects"
    DUPLICATE_KEY = "duplicate_key"
    REFUSAL = "refusal"
    OTHER = "other"


class UncheckedReason(StrEnum):
    """Why nothing checked the answer of a success: it is a call, but no first pass."""

    NO_SCHEMA = "no_schema"
    NO_ANSWER = "no_answer"
    OVER_BUDGET = "over_budget"


class CallErrorType(StrEnum):
    """Why a call returned no answer; never a parse failure."""

    TIMEOUT = "timeout"
    PROVIDER_ERROR = "provider_error"
    RATE_LIMITED = "rate_limited"
    CIRCUIT_OPEN = "circuit_open"
    BUDGET_EXHAUSTED = "budget_exhausted"


class EventKind(StrEnum):
    """The kind of an event, the last part of its name."""

    PARSE_INVALID = "parse_invalid"
    DEGRADED = "degraded"
    SUCCEEDED = "succeeded"
    PROVIDER_ERROR = "provider_error"
    UNKNOWN_TOOL = "unknown_tool"
    # By the caller: a call that was given up, or a run; in none of the rates.
    CANCELLED = "cancelled"


PARSE_ERROR_TYPES = frozenset(ParseErrorType)
FAILURE_EVENT_KINDS = frozenset(EventKind) - {EventKind.SUCCEEDED, EventKind.CANCELLED}
# The terminal event is dated after the attempt that caused it, so that sorting keeps the order.
AFTER = timedelta(milliseconds=1)
DEGRADED_REASONS = frozenset({"circuit_open", "budget_exhausted", "provider_failed", "timeout"})
NAME = re.compile(r"graph\.([a-z][a-z0-9_-]{0,62})\.(" + "|".join(EventKind) + r")", re.ASCII)
WRITTEN_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:")
REQUIRED_FIELDS: Mapping[EventKind, tuple[str, ...]] = {
    EventKind.PARSE_INVALID: ("attempt", "parse_error_type"),
    EventKind.DEGRADED: ("attempts", "reason", "status"),
    EventKind.SUCCEEDED: ("attempt",),
    EventKind.PROVIDER_ERROR: ("attempt",),
    EventKind.UNKNOWN_TOOL: ("tool",),
    EventKind.CANCELLED: (),
}
Short = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(max_length=4096)]


def read_whole(value: object) -> object:
    """Return the integer that JSON writes with a point, such as 12.0; anything else as it is."""
    return int(value) if type(value) is float and value.is_integer() else value


Whole = BeforeValidator(read_whole)
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER, strict=True), Whole]
Ordinal = Annotated[int, Field(ge=1, le=MAX_INTEGER, strict=True), Whole]
Temperature = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
OutputMode = Literal["text", "json", "schema", "tools"]
AttributeKey = Annotated[str, StringConstraints(min_length=1, max_length=200)]
AttributeValue = (
    Annotated[bool, Field(strict=True)]
    | Annotated[int, Field(ge=-(2**53), le=2**53, strict=True)]
    | Annotated[float, Field(allow_inf_nan=False, strict=True)]
    | Text
)
Attributes = Annotated[
    dict[AttributeKey, AttributeValue],
    Field(max_length=MAX_ATTRIBUTES),
    # PHP writes an empty object as an empty list.
    BeforeValidator(lambda value: value if value != [] else {}),
]
# Missing, or empty as generated clients send it: the node is read from the name.
NodeName = Annotated[str, StringConstraints(max_length=200)]


def round_milliseconds(value: object) -> object:
    if isinstance(value, float) and abs(value) <= MAX_INTEGER:
        return round(value)
    return value


Milliseconds = Annotated[
    int, Field(ge=0, le=MAX_INTEGER, strict=True), BeforeValidator(round_milliseconds)
]


def event_name(node: str, kind: EventKind) -> str:
    """Return the name of an event: `graph.<node>.<kind>`."""
    return f"graph.{node}.{kind.value}"


@lru_cache(maxsize=4096)
def split_name(name: str) -> tuple[str, EventKind]:
    """Split `graph.<node>.<kind>`; ValueError for any other text."""
    match = NAME.fullmatch(name)
    if match is None:
        raise ValueError("a name has the form graph.<node>.<kind>")
    return match[1], EventKind(match[2])


def name_served(model: str | None, served_model: str | None, upstream: str | None) -> str | None:
    """Return `model at upstream` of an answer; None when only the requested model is known."""
    answered = served_model or model
    if answered is None or (answered == model and upstream is None):
        return None
    return answered if upstream is None else f"{answered} at {upstream}"


# Of pydantic's own errors, in the place of its messages.
TIME_WORDS: LiteralString = "an RFC 3339 time with offset is required"
WORDS: Mapping[str, LiteralString] = {
    "extra_forbidden": "unknown field",
    "timezone_aware": TIME_WORDS,
    "datetime_from_date_parsing": TIME_WORDS,
    "datetime_parsing": TIME_WORDS,
    "model_type": "expected an object",
}


def require_written(value: object) -> object:
    """Refuse times that are plain numbers: their unit would be a guess.

    An offset may have hours only, as PostgreSQL writes it (`+01`).
    """
    if isinstance(value, str) and WRITTEN_TIME.match(value):
        return f"{value}:00" if value[-3] in "+-" else value
    if isinstance(value, datetime):
        return value
    raise PydanticCustomError("time_text", TIME_WORDS)


def require_plausible(value: datetime) -> datetime:
    """Return the time in UTC; refuse implausible years."""
    if EARLIEST_YEAR < value.year < LATEST_YEAR:
        return value.astimezone(UTC)
    raise PydanticCustomError("time_range", "the time must lie between 1971 and 2199")


PlausibleTime = Annotated[
    AwareDatetime, BeforeValidator(require_written), AfterValidator(require_plausible)
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ValidationErrorItem(_Part):
    """One reason why an answer was refused; `line` and `column` are 1-based."""

    path: Text | None = None
    code: Short | None = None
    message: Text = ""
    line: Ordinal | None = None
    column: Ordinal | None = None


class Repair(_Part):
    """One repair of the parser, and whether it lost anything."""

    kind: Short
    line: Ordinal | None = None
    column: Ordinal | None = None
    lossless: bool = True


# Kinds of repairs around the root value, not inside it.
AROUND = frozenset((
    "fence", "prose", "think_block", "run_on", "tag", "wrapper", "block_quote", "byte_order_mark",
    "repeated_answer", "quoted_answer",
))  # fmt: skip


class Coercion(_Part):
    """One value that was coerced."""

    path: Text
    kind: Short
    line: Ordinal | None = None
    column: Ordinal | None = None


def leave_out_id(schema: dict[str, Any]) -> None:
    """Make `event_id` optional in a schema: the server creates a missing id."""
    schema["required"].remove("event_id")


class PostedEvent(_Part):
    """One event as in docs/http-api.md; construct it by wire names (`schema=...`)."""

    model_config = ConfigDict(json_schema_extra=leave_out_id)

    event_id: UUID
    name: Short
    occurred_at: PlausibleTime
    correlation_id: Short
    node: NodeName = ""
    cycle: Ordinal
    attempt: Ordinal | None = None
    attempts: Count | None = None
    reason: Short | None = None
    status: Literal["failed", "stubbed"] | None = None
    tool: Text | None = None
    provider: Short | None = None
    model: Short | None = None
    served_model: Short | None = None
    upstream: Short | None = None
    system_fingerprint: Short | None = None
    schema_name: Short | None = Field(default=None, alias="schema")
    schema_version: Short | None = None
    prompt_version: Short | None = None
    environment: Short | None = None
    source: Short | None = None
    release: Short | None = None
    parse_error_type: ParseErrorType | None = None
    original_error_type: Short | None = None
    finish_reason: Short | None = None
    validation_errors: tuple[ValidationErrorItem, ...] = ()
    raw_output_preview: str | None = None
    repairs: Annotated[tuple[Repair, ...], Field(max_length=MAX_ERRORS)] = ()
    coerced: Annotated[tuple[Coercion, ...], Field(max_length=MAX_ERRORS)] = ()
    output_mode: OutputMode | None = None
    max_output_tokens: Count | None = None
    temperature: Temperature | None = None
    latency_ms: Milliseconds | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    attributes: Attributes = Field(default_factory=dict)
    unchecked: UncheckedReason | None = None
    region: Short | None = None
    credential: Short | None = None

    @property
    def kind(self) -> EventKind:
        return split_name(self.name)[1]

    @model_validator(mode="before")
    @classmethod
    def _keep_unknown_error_type(cls, value: object) -> object:
        """Replace an unknown parse error type by `other` and keep the original."""
        if not isinstance(value, dict):
            return value
        sent = value.get("parse_error_type")
        if not isinstance(sent, str) or not sent or sent in PARSE_ERROR_TYPES:
            return value
        original = value.get("original_error_type") or sent[:200]
        return {**value, "parse_error_type": ParseErrorType.OTHER, "original_error_type": original}

    @field_validator("validation_errors", "repairs", "coerced", "attributes", mode="before")
    @classmethod
    def _null_is_empty(cls, value: object, field: ValidationInfo) -> object:
        if value is None:
            return {} if field.field_name == "attributes" else ()
        return value

    @field_validator("validation_errors", mode="before")
    @classmethod
    def _accept_plain_messages(cls, value: object) -> object:
        """Accept strings as messages and keep at most the first 100 items."""
        if not isinstance(value, list | tuple):
            return value
        return [
            {"message": item[:4096]} if isinstance(item, str) else item
            for item in value[:MAX_ERRORS]
        ]

    @field_validator("name")
    @classmethod
    def _is_event_name(cls, value: str) -> str:
        try:
            split_name(value)
        except ValueError as error:
            kinds = ", ".join(EventKind)
            raise PydanticCustomError(
                "event_name",
                "answered, or graph.<node>.<kind>, node of a-z, 0-9, _ and -, kind one of " + kinds,
            ) from error
        return value

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        node, kind = split_name(self.name)
        if self.node not in ("", node):
            raise field_error("node", "mismatch", f"the name says {node}")
        object.__setattr__(self, "node", node)
        if missing := [field for field in REQUIRED_FIELDS[kind] if getattr(self, field) is None]:
            needed = f"{kind} events need {', '.join(missing)}"
            raise field_error(missing[0], "missing", needed)
        if self.unchecked is not None and kind is not EventKind.SUCCEEDED:
            raise field_error("unchecked", "not_succeeded", f"a {kind} event was checked")
        if kind is EventKind.DEGRADED:
            reasons = {f"{node}_parse_failed", *DEGRADED_REASONS}
            if self.reason not in reasons:
                message = f"reason is one of {', '.join(sorted(reasons))}"
                raise field_error("reason", "unknown_reason", message)
        return self


def field_error(field: str, code: str, message: str) -> PydanticCustomError:
    """Return an error of a model validator that concerns one field."""
    return PydanticCustomError(code, "{message}", {"field": field, "message": message})


def describe_errors(error: ValidationError) -> list[dict[str, str]]:
    """Turn pydantic's error into `{path, code, message}` with JSON pointers.

    Messages never contain the refused value; pointers name unknown keys.
    """
    errors = error.errors(include_input=False, include_url=False)[:MAX_ERRORS]
    described = [_describe(dict(item)) for item in errors]
    # A value of a union type fails once for each of its types.
    return list({(item["path"], item["code"]): item for item in described}.values())


def _describe(error: Mapping[str, Any]) -> dict[str, str]:
    context = error.get("ctx") or {}
    location: Sequence[Any] = (context["field"],) if "field" in context else error["loc"]
    if len(location) > 2 and location[0] == "attributes":
        return _describe_attribute(location[1], is_key=location[2] == "[key]")
    return {
        "path": pointer_of(str(part)[:200] for part in location),
        "code": str(error["type"]),
        "message": WORDS.get(error["type"], str(error["msg"])),
    }


def _describe_attribute(name: str, *, is_key: bool) -> dict[str, str]:
    message = (
        "a name of 1 to 200 characters"
        if is_key
        else "a text of at most 4096 characters, a finite number or a boolean"
    )
    path = pointer_of(("attributes", name[:200]))
    return {"path": path, "code": "attribute", "message": message}
