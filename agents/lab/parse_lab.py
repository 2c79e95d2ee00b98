"""The parse lab: parse one answer with chosen settings; every finding has its position.

Parser and validation are the planner's. Parts of them can be disabled: without
recovery only strict JSON is accepted, without leniency every type must match exactly.
"""

from dataclasses import dataclass
from typing import Any

from diagnostics.ingest.schemas import CompiledSchema, OverBudgetError, faults_of
from failsoft.actions.decoding import decode_tool_calls
from failsoft.actions.toolsets import Toolset
from failsoft.events import MAX_ERRORS, Coercion, ParseErrorType, Repair, ValidationErrorItem
from failsoft.parsing import Recovered, RefusedAnswer, TextPlaces, recover
from failsoft.retry.judging import AnswerJudge

MAX_TEXT = 1_000
CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class Settings:
    recovers: bool = True
    """Whether damaged JSON is repaired if it has exactly one reading."""
    is_lenient: bool = True
    """Whether types are coerced; never for agents' own schemas."""

    @property
    def words(self) -> str:
        first = "recovering parser" if self.recovers else "strict JSON"
        return f"{first}, {'lenient' if self.is_lenient else 'exact'} types"


@dataclass(frozen=True, slots=True)
class ParseTarget:
    """What an answer is checked against: one of our answers, tool calls, a schema, or nothing."""

    label: str
    judge: AnswerJudge | None = None
    schema: CompiledSchema | None = None
    toolset: Toolset | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of parsing an answer; `value` is None unless it is JSON."""

    error_type: ParseErrorType | None
    value: Any = None
    errors: tuple[ValidationErrorItem, ...] = ()
    repairs: tuple[Repair, ...] = ()
    coerced: tuple[Coercion, ...] = ()

    @property
    def ok(self) -> bool:
        return self.error_type is None


# The value, what is wrong with it, and what was coerced.
Judged = tuple[Any, tuple[ValidationErrorItem, ...], tuple[Coercion, ...]]


def read_answer(
    text: str, target: ParseTarget, settings: Settings, finish_reason: str | None = None
) -> Reading:
    """Parse an answer with these settings; never raises, for any text."""
    recovered = recover(text, finish_reason)
    if isinstance(recovered, RefusedAnswer):
        return Reading(recovered.error_type, errors=(recovered.reason,))
    if recovered.repairs and not settings.recovers:
        first = recovered.repairs[0]
        error = ValidationErrorItem(
            path="",
            code=ParseErrorType.NOT_JSON.value,
            message=f"strict JSON ends here: {first.kind.replace('_', ' ')}",
            line=first.line,
            column=first.column,
        )
        return Reading(ParseErrorType.NOT_JSON, errors=(error,))
    value, errors, coerced = _judge(recovered, target, settings)
    error_type = ParseErrorType.SCHEMA_INVALID if errors else None
    return Reading(error_type, value, errors, recovered.repairs, coerced)


def _judge(recovered: Recovered, target: ParseTarget, settings: Settings) -> Judged:
    if target.toolset is not None:
        return _judge_calls(recovered, target.toolset)
    if target.schema is not None:
        try:
            return recovered.value, faults_of(recovered, target.schema), ()
        except OverBudgetError as error:
            too_large = ValidationErrorItem(path="", code="too_large", message=str(error))
            return recovered.value, (too_large,), ()
    if target.judge is None:
        return recovered.value, (), ()
    judged = target.judge.judge(recovered, is_lenient=settings.is_lenient)
    return judged.value, judged.errors, judged.coerced


def _judge_calls(recovered: Recovered, toolset: Toolset) -> Judged:
    """Decode tool calls written as JSON: a list, or an object that contains it."""
    value: Any = recovered.value
    is_held = isinstance(value, dict) and CALLS in value
    result = decode_tool_calls(value[CALLS] if is_held else value, toolset)
    places, before = TextPlaces(recovered.text), f"/{CALLS}" if is_held else ""
    errors = tuple(
        places.error(
            item.pointer,
            item.code,
            item.message[:MAX_TEXT],
            before + (item.pointer or f"/{item.call}"),
        )
        for item in result.failures[:MAX_ERRORS]
    )
    coerced = tuple(
        places.coercion(item.pointer, item.kind, before + item.pointer)
        for item in result.coerced[:MAX_ERRORS]
    )
    return [action.flat() for action in result.actions], errors, coerced
