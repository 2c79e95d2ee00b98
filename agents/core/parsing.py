"""One answer in, one verdict out: recovered, softened and checked against what was asked for.

The `parse` command and the parse lab show exactly this; a planner sees the same through
`interpreting`.
"""

from enum import StrEnum
from typing import Any

from agents.core import judging
from agents.core.judging import Judge, Judged
from diagnostics.core.events import ParseErrorType, ValidationErrorItem
from diagnostics.core.recovery import Refused, recover


class AnswerSchema(StrEnum):
    """What an answer may be checked against; `none` takes any object or array."""

    PLAN = "plan"
    NEXT_STEP = "next_step"
    DECISION = "decision"
    NONE = "none"


_JUDGES: dict[AnswerSchema, Judge] = {
    AnswerSchema.PLAN: judging.PLAN,
    AnswerSchema.NEXT_STEP: judging.NEXT_STEP,
    AnswerSchema.DECISION: judging.DECISION,
}


def parse_answer(
    text: str,
    schema: AnswerSchema = AnswerSchema.NONE,
    finish_reason: str | None = None,
) -> dict[str, Any]:
    """Read an answer and say what became of it; never raises.

    Returns `ok`, `value` (null unless ok), `repairs`, `coerced` and `error` (null when ok) with
    the keys type, line, column (1-based) and message.
    """
    found = recover(text, finish_reason)
    if isinstance(found, Refused):
        error = _error(found.error_type, found.line, found.column, found.message)
        return {
            "ok": False,
            "value": None,
            "repairs": [],
            "coerced": [],
            "error": error,
        }
    judge = _JUDGES.get(schema)
    judged = judge.judge(found) if judge is not None else Judged(found.value)
    return {
        "ok": not judged.errors,
        "value": None if judged.errors else judged.value,
        "repairs": [item.model_dump() for item in found.repairs],
        "coerced": [item.model_dump() for item in judged.coerced],
        "error": _schema_error(judged.errors) if judged.errors else None,
    }


def _schema_error(errors: tuple[ValidationErrorItem, ...]) -> dict[str, Any]:
    first = errors[0]
    told = "; ".join(f"{dotted(item.path or '')}: {item.message}" for item in errors[:5])
    more = f"; and {len(errors) - 5} more" if len(errors) > 5 else ""
    message = f"line {first.line}, column {first.column}: {told}{more}"
    return _error(ParseErrorType.SCHEMA_INVALID, first.line, first.column, message)


def dotted(pointer: str) -> str:
    """Write a JSON pointer as people do: `steps[1].tool` (S1-13)."""
    written = ""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        written += f"[{name}]" if name.isdecimal() else f".{name}" if written else name
    return written or "the answer"


def _error(
    error_type: ParseErrorType, line: int | None, column: int | None, message: str
) -> dict[str, Any]:
    return {
        "type": error_type.value,
        "line": line,
        "column": column,
        "message": message,
    }
