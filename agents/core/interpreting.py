"""From a model's text to a proposal or a plan, or to errors a planner can act on.

This is s1's `validate_and_parse_plan`, separate from generation: needs no provider, no
database and no clock.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agents.core import judging, proposals
from agents.core.judging import check_plan, check_proposal
from diagnostics.core.events import (
    Coercion,
    ParseErrorType,
    Repair,
    ValidationErrorItem,
)
from diagnostics.core.recovery import Refused, recover

__all__ = [
    "WRITTEN",
    "Misunderstood",
    "Schema",
    "Understood",
    "check_plan",
    "check_proposal",
    "interpret",
    "unknown_tools",
]


UNKNOWN_KEY = "unknown_key_dropped"


class Schema(StrEnum):
    """What a planner is asked for; the values are the documented schema names."""

    NEXT_STEP = proposals.SCHEMA_NAME
    PLAN = "PlanPayload"
    # Native tool calls, which are decoded and not read from text (s4).
    ACTIONS = "ToolCalls"


# What a planner answers as text.
WRITTEN = (Schema.NEXT_STEP, Schema.PLAN)


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


def interpret(text: str, finish_reason: str | None, schema: Schema) -> Understood | Misunderstood:
    """Read, soften (X-20) and validate an answer; never raises, for any text."""
    found = recover(text, finish_reason)
    if isinstance(found, Refused):
        return Misunderstood(found.error_type, (_refusal_item(found),))
    judged = _JUDGES[schema].judge(found)
    if judged.errors:
        return Misunderstood(
            ParseErrorType.SCHEMA_INVALID, judged.errors, found.repairs, judged.coerced
        )
    return Understood(judged.value, found.repairs, judged.coerced)


def _refusal_item(found: Refused) -> ValidationErrorItem:
    return ValidationErrorItem(
        path="",
        code=found.error_type.value,
        # Without the excerpt: a window on unredacted text could cut a secret in half.
        message=f"expected {found.expected}",
        line=found.line,
        column=found.column,
    )


@dataclass(frozen=True, slots=True)
class Reread:
    """An answer as it was softened, whatever is wrong with it, and the keys that were dropped."""

    value: Any
    dropped: tuple[str, ...] = ()


def reread(text: str, schema: Schema) -> Reread:
    """Read and soften an answer without judging it; None as its value when it cannot be read."""
    judge = _JUDGES.get(schema)
    found = recover(text)
    if judge is None or isinstance(found, Refused):
        return Reread(None)
    softer = judge.soften(found.value)
    dropped = (item.path for item in softer.done if item.kind == UNKNOWN_KEY)
    return Reread(softer.value, tuple(dropped))


def unknown_tools(value: dict[str, Any], schema: Schema, registered: Collection[str]) -> list[str]:
    """Tools of a valid answer that nobody registered: not a parse failure (X-15)."""
    if schema is Schema.NEXT_STEP:
        named = [value["tool"]] if value["kind"] == "call_tool" else []
    else:
        tools = [step["tool"] for step in value["steps"]]
        named = [tool if isinstance(tool, str) else tool["name"] for tool in tools]
    return sorted({name for name in named if name not in registered})


_JUDGES = {Schema.NEXT_STEP: judging.NEXT_STEP, Schema.PLAN: judging.PLAN}
