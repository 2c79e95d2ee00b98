"""Parsing of model text into a valid proposal, plan or list of calls, or located errors."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from failsoft.events import Coercion, ParseErrorType, Repair, ValidationErrorItem
from failsoft.json_values import pointer_parts
from failsoft.parsing import RefusedAnswer, recover
from failsoft.parsing.leniency import UNKNOWN_KEY
from failsoft.parsing.thinking import reasoning_fault
from failsoft.retry import proposals
from failsoft.retry.judging import (
    DECISION,
    KEY_UNKNOWN,
    NEXT_STEP,
    PLAN,
    AnswerJudge,
    CallCheck,
    JudgedAnswer,
    any_call,
)


class PlannerSchema(StrEnum):
    """The kinds of answers of a planner; the values are the documented schema names."""

    NEXT_STEP = proposals.SCHEMA_NAME
    PLAN = "PlanPayload"
    # Native tool calls, which are not parsed from text.
    ACTIONS = "ToolCalls"


# Answers that are parsed from text.
WRITTEN = (PlannerSchema.NEXT_STEP, PlannerSchema.PLAN)


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
    # The tools that it calls and that are not registered.
    unknown_tools: tuple[str, ...] = ()


def interpret(
    text: str, finish_reason: str | None, schema: PlannerSchema, check_call: CallCheck = any_call
) -> Understood | Misunderstood:
    """Parse, soften and validate an answer; never raises, for any text.

    `check_call` checks the tools that it calls, and their arguments.
    """
    outcome = recover(text, finish_reason)
    if isinstance(outcome, RefusedAnswer):
        return Misunderstood(outcome.error_type, (outcome.reason,))
    judged = _JUDGES[schema].judge(outcome, check_call)
    if judged.errors:
        return Misunderstood(
            ParseErrorType.SCHEMA_INVALID,
            judged.errors,
            outcome.repairs,
            judged.coerced,
            judged.unknown_tools,
        )
    return Understood(judged.value, outcome.repairs, judged.coerced)


def explain_reasoning(
    answer: Misunderstood, text: str, output_tokens: int | None, reasoning_tokens: int | None
) -> Misunderstood:
    """Return an answer without text with reasoning as its cause, if that took tokens."""
    is_blank = answer.error_type in (ParseErrorType.EMPTY_OUTPUT, ParseErrorType.TRUNCATED)
    if text.strip() or not is_blank or not reasoning_tokens:
        return answer
    return replace(answer, errors=(reasoning_fault(output_tokens, reasoning_tokens),))


@dataclass(frozen=True, slots=True)
class Reread:
    """A softened answer, valid or not, and the keys that are not of its schema."""

    value: Any
    dropped: tuple[str, ...] = ()


def reread(text: str, schema: PlannerSchema) -> Reread:
    """Parse and soften an answer without validation; its value is None when unreadable."""
    judge = _JUDGES.get(schema)
    outcome = recover(text)
    if judge is None or isinstance(outcome, RefusedAnswer):
        return Reread(None)
    softened = judge.soften(outcome.value)
    dropped = [item.path for item in softened.done if item.kind == UNKNOWN_KEY]
    refused = [item.path for item in judge.check(softened.value) if item.code == KEY_UNKNOWN]
    return Reread(softened.value, (*dropped, *refused))


class AnswerSchema(StrEnum):
    """The schemas for `parse_answer`; `none` accepts any object or array."""

    PLAN = "plan"
    NEXT_STEP = "next_step"
    DECISION = "decision"
    NONE = "none"


_JUDGES: dict[StrEnum, AnswerJudge] = {
    **dict.fromkeys((PlannerSchema.PLAN, AnswerSchema.PLAN), PLAN),
    **dict.fromkeys((PlannerSchema.NEXT_STEP, AnswerSchema.NEXT_STEP), NEXT_STEP),
    AnswerSchema.DECISION: DECISION,
}


def parse_answer(
    text: str, schema: AnswerSchema = AnswerSchema.NONE, finish_reason: str | None = None
) -> dict[str, Any]:
    """Parse an answer and return the outcome; never raises.

    Returns `ok`, `value` (null unless ok), `repairs`, `coerced` and `error` (null when ok) with
    the keys type, line, column (1-based) and message.
    """
    outcome = recover(text, finish_reason)
    if isinstance(outcome, RefusedAnswer):
        error = _error(outcome.error_type, outcome.line, outcome.column, outcome.message)
        return {"ok": False, "value": None, "repairs": [], "coerced": [], "error": error}
    judge = _JUDGES.get(schema)
    judged = judge.judge(outcome) if judge is not None else JudgedAnswer(outcome.value)
    return {
        "ok": not judged.errors,
        "value": None if judged.errors else judged.value,
        "repairs": [item.model_dump() for item in outcome.repairs],
        "coerced": [item.model_dump() for item in judged.coerced],
        "error": _schema_error(judged.errors) if judged.errors else None,
    }


def _schema_error(errors: tuple[ValidationErrorItem, ...]) -> dict[str, Any]:
    first = errors[0]
    messages = "; ".join(f"{dotted(item.path or '')}: {item.message}" for item in errors[:5])
    more = f"; and {len(errors) - 5} more" if len(errors) > 5 else ""
    message = f"line {first.line}, column {first.column}: {messages}{more}"
    return _error(ParseErrorType.SCHEMA_INVALID, first.line, first.column, message)


def dotted(pointer: str) -> str:
    path = ""
    for name in pointer_parts(pointer):
        path += f"[{name}]" if name.isdecimal() else f".{name}" if path else name
    return path or "the answer"


def _error(
    error_type: ParseErrorType, line: int | None, column: int | None, message: str
) -> dict[str, Any]:
    return {"type": error_type.value, "line": line, "column": column, "message": message}
