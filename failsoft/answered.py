"""Answers in the wire format: posted as the model wrote them, validated by the server.

docs/http-api.md describes every field.
"""

import re
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from failsoft.events import (
    Attributes,
    Count,
    Milliseconds,
    NodeName,
    Ordinal,
    OutputMode,
    PlausibleTime,
    Short,
    Temperature,
    field_error,
    leave_out_id,
)

ANSWERED = "answered"
NAME = re.compile(r"(?:graph\.([a-z][a-z0-9_-]{0,62})\.)?answered", re.ASCII)
NODE = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
MAX_ANSWER = 1 << 20
MAX_CALLS = 100
MAX_TOOLS = 200
ANSWER_PARTS = frozenset({"text", "tool_calls", "refusal", "tools", "answer_schema"})
"""The fields with the content of the answer and the request; they are not stored."""
AnswerText = Annotated[str, StringConstraints(max_length=MAX_ANSWER)]


def is_answered(name: object) -> bool:
    """Whether an item of this name is an answer that is not validated yet."""
    return isinstance(name, str) and (name == ANSWERED or name.endswith(f".{ANSWERED}"))


class AnsweredCall(BaseModel):
    """One tool call, in this shape or in that of a provider."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    # Whatever the model wrote: a broken call counts as a failure, it is not refused.
    name: AnswerText | None = None
    arguments: AnswerText | dict[str, Any] | None = None


class PostedAnswer(BaseModel):
    """One answer of a model, to be validated and classified by the server."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, json_schema_extra=leave_out_id
    )

    event_id: UUID
    name: Annotated[str, StringConstraints(max_length=200)] = Field(
        description="`answered`, or `graph.<node>.answered`"
    )
    node: NodeName = Field(default="", description="needed where the name has none")
    occurred_at: PlausibleTime
    correlation_id: Short
    # A factory, because generated client types require fields with a plain default.
    cycle: Ordinal = Field(default_factory=lambda: 1, description="1 where it is left out")
    attempt: Ordinal | None = Field(
        default=None, description="left out: found out by the order of the run's answers"
    )
    text: AnswerText | None = Field(default=None, description="null: the model gave none")
    tool_calls: Annotated[list[AnsweredCall], Field(max_length=MAX_CALLS)] = Field(
        default_factory=list
    )
    refusal: AnswerText | None = None
    error: Short | None = Field(
        default=None, description="of a call that gave no answer: its exception, or HTTP status"
    )
    tools: Annotated[list[dict[str, Any]], Field(max_length=MAX_TOOLS)] = Field(
        default_factory=list, description="as the request offered them, with their schemas"
    )
    answer_schema: dict[str, Any] | None = Field(
        default=None, description="what the request asked for, where no schema is registered"
    )
    # As in PostedEvent. A shared base class would change the order of fields there, and the
    # hashes that identify stored events depend on that order.
    finish_reason: Short | None = None
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
    output_mode: OutputMode | None = None
    max_output_tokens: Count | None = None
    temperature: Temperature | None = None
    latency_ms: Milliseconds | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    region: Short | None = None
    credential: Short | None = None
    attributes: Attributes = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _is_answer_name(cls, value: str) -> str:
        if NAME.fullmatch(value) is None:
            raise PydanticCustomError("event_name", "answered, or graph.<node>.answered")
        return value

    @field_validator("finish_reason", "served_model", "system_fingerprint", mode="before")
    @classmethod
    def _empty_is_null(cls, value: object) -> object:
        """Take the empty fields of a response as missing."""
        return None if value == "" else value

    @field_validator("tool_calls", "tools", mode="before")
    @classmethod
    def _null_is_empty(cls, value: object) -> object:
        return [] if value is None else value

    @model_validator(mode="after")
    def _resolve_node(self) -> Self:
        match = NAME.fullmatch(self.name)
        node = match[1] if match is not None else None
        if node is None and NODE.fullmatch(self.node) is None:
            code = "node_name" if self.node else "missing"
            raise field_error("node", code, "a node: lower case, digits, - and _")
        if node is not None and self.node not in ("", node):
            raise field_error("node", "mismatch", f"the name says {node}")
        object.__setattr__(self, "node", node or self.node)
        return self

    @model_validator(mode="after")
    def _has_answer_or_error(self) -> Self:
        has_answer = bool(self.model_fields_set & {"text", "refusal"}) or self.tool_calls
        if not (has_answer or self.error):
            needed = "one of text, tool_calls, refusal and error is needed"
            raise field_error("text", "missing", needed)
        return self
