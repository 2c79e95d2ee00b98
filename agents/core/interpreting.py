"""From a model's text to a proposal or a plan, or to errors a planner can act on.

This is s1's `validate_and_parse_plan`, separate from generation: needs no provider, no
database and no clock.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from agents.core import coercion, proposals
from agents.core.extraction import Answer, Refusal, read_answer
from agents.core.positions import Located, line_and_column, locate, pointer_of
from agents.core.proposals import PROPOSALS
from diagnostics.core.events import (
    Coercion,
    ParseErrorType,
    Repair,
    ValidationErrorItem,
)
from plans.core.validation import validate_payload

MAX_ERRORS = 100


class Schema(StrEnum):
    """What a planner is asked for; the values are the documented schema names."""

    NEXT_STEP = proposals.SCHEMA_NAME
    PLAN = "PlanPayload"


@dataclass(frozen=True, slots=True)
class Understood:
    """A valid answer; `value` is JSON-shaped, for a plan the payload, for a step the proposal."""

    value: dict[str, Any]
    repairs: tuple[Repair, ...] = ()
    coerced: tuple[Coercion, ...] = ()


@dataclass(frozen=True, slots=True)
class Misunderstood:
    """An invalid answer with at least one located error."""

    error_type: ParseErrorType
    errors: tuple[ValidationErrorItem, ...]
    repairs: tuple[Repair, ...] = ()
    coerced: tuple[Coercion, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of shape before it has a place: a JSON pointer, a code, what was expected."""

    path: str
    code: str
    message: str


def interpret(
    text: str, finish_reason: str | None, schema: Schema
) -> Understood | Misunderstood:
    """Read, soften (X-20) and validate an answer; never raises, for any text."""
    answer = read_answer(text, finish_reason)
    if isinstance(answer, Refusal):
        return Misunderstood(answer.error_type, answer.errors)
    value, softened = _SOFTEN[schema](answer.value)
    found = locate(answer.text, answer.start)
    coerced = tuple(_place_coercion(item, answer, found) for item in softened)
    faults = _CHECK[schema](value)
    if faults:
        errors = tuple(
            _place_fault(fault, answer, found) for fault in faults[:MAX_ERRORS]
        )
        return Misunderstood(
            ParseErrorType.SCHEMA_INVALID, errors, answer.repairs, coerced
        )
    return Understood(value, answer.repairs, coerced)


def unknown_tools(
    value: dict[str, Any], schema: Schema, registered: Collection[str]
) -> list[str]:
    """Tools of a valid answer that nobody registered: not a parse failure (X-15)."""
    if schema is Schema.NEXT_STEP:
        named = [value["tool"]] if value["kind"] == "call_tool" else []
    else:
        tools = [step["tool"] for step in value["steps"]]
        named = [tool if isinstance(tool, str) else tool["name"] for tool in tools]
    return sorted({name for name in named if name not in registered})


def check_proposal(value: object) -> list[Fault]:
    """Every violation of `NextStepProposal`, none when it is valid."""
    if not isinstance(value, dict):
        return [
            Fault("", "object_type", "expected one object with a `kind`, not a list")
        ]
    try:
        PROPOSALS.validate_python(value)
    except ValidationError as error:
        return [
            _fault_of(item)
            for item in error.errors(include_input=False, include_url=False)
        ]
    return []


def check_plan(value: object) -> list[Fault]:
    """Every violation of the plan contract, none when it is valid."""
    return [
        Fault(item.path, item.code, item.message) for item in validate_payload(value)
    ]


def _fault_of(item: Any) -> Fault:  # noqa: ANN401 - pydantic's TypedDict is private to it
    location = list(item["loc"])
    if item["type"].startswith("union_tag"):
        return Fault(
            "/kind",
            item["type"],
            f"expected `kind` to be one of {', '.join(proposals.KINDS)}",
        )
    # The first segment is the kind that was chosen, which is no key of the document.
    return Fault(pointer_of(location[1:]), item["type"], item["msg"])


def _place_fault(fault: Fault, answer: Answer, found: Located) -> ValidationErrorItem:
    line, column = line_and_column(answer.text, found.offset_of(fault.path))
    return ValidationErrorItem(
        path=fault.path[:1000],
        code=fault.code,
        message=fault.message[:1000],
        line=line,
        column=column,
    )


def _place_coercion(
    item: coercion.Softened, answer: Answer, found: Located
) -> Coercion:
    line, column = line_and_column(answer.text, found.offset_of(item.path))
    return Coercion(path=item.path[:1000], kind=item.kind, line=line, column=column)


_SOFTEN: dict[Schema, Callable[[Any], tuple[Any, list[coercion.Softened]]]] = {
    Schema.NEXT_STEP: coercion.soften_proposal,
    Schema.PLAN: coercion.soften_plan,
}
_CHECK: dict[Schema, Callable[[object], list[Fault]]] = {
    Schema.NEXT_STEP: check_proposal,
    Schema.PLAN: check_plan,
}
