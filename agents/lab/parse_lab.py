"""The parse lab: one answer read under settings of one's own, everything told with its place.

The same parser and judges as the planner's, which may be switched off part by part: without
recovery only strict JSON counts, without leniency every type must fit as it is.
"""

from dataclasses import dataclass
from typing import Any

from diagnostics.ingest.schemas import CompiledSchema, OverBudgetError
from diagnostics.ingest.schemas.judging import faults_of
from failsoft.actions.decoding import decode_tool_calls
from failsoft.actions.toolsets import Toolset
from failsoft.events import MAX_ERRORS, Coercion, ParseErrorType, Repair, ValidationErrorItem
from failsoft.parsing import Recovered, RefusedAnswer, TextPlaces, recover
from failsoft.retry.answers import AnswerJudge

MAX_TEXT = 1_000
CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class Settings:
    """How an answer is read."""

    recovers: bool = True
    """Whether damaged JSON is put right where exactly one reading exists."""
    is_lenient: bool = True
    """Whether types are softened; agents' own schemas are never softened."""

    @property
    def words(self) -> str:
        """The settings as they are read."""
        first = "recovering parser" if self.recovers else "strict JSON"
        return f"{first}, {'lenient' if self.is_lenient else 'exact'} types"


@dataclass(frozen=True, slots=True)
class ParseTarget:
    """What an answer should be: one of our answers, tool calls, a schema, or anything."""

    label: str
    judge: AnswerJudge | None = None
    schema: CompiledSchema | None = None
    toolset: Toolset | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of an answer; `value` is None unless it was read as JSON."""

    error_type: ParseErrorType | None
    value: Any = None
    errors: tuple[ValidationErrorItem, ...] = ()
    repairs: tuple[Repair, ...] = ()
    coerced: tuple[Coercion, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether a planner would have gone on with it."""
        return self.error_type is None


def read_answer(
    text: str, target: ParseTarget, settings: Settings, finish_reason: str | None = None
) -> Reading:
    """Read an answer under settings; never raises, for any text."""
    found = recover(text, finish_reason)
    if isinstance(found, RefusedAnswer):
        return Reading(found.error_type, errors=(found.reason,))
    if found.repairs and not settings.recovers:
        return _not_strict(found)
    if target.toolset is not None:
        return _read_calls(found, target.toolset)
    if target.schema is not None:
        return _check(found, target.schema)
    if target.judge is None:
        return Reading(None, found.value, (), found.repairs)
    judged = target.judge.judge(found, is_lenient=settings.is_lenient)
    return Reading(
        ParseErrorType.SCHEMA_INVALID if judged.errors else None,
        judged.value,
        judged.errors,
        found.repairs,
        judged.coerced,
    )


def _not_strict(found: Recovered) -> Reading:
    """Refuse what would have needed a repair, at the first of them."""
    first = found.repairs[0]
    error = ValidationErrorItem(
        path="",
        code=ParseErrorType.NOT_JSON.value,
        message=f"strict JSON ends here: {first.kind.replace('_', ' ')}",
        line=first.line,
        column=first.column,
    )
    return Reading(ParseErrorType.NOT_JSON, errors=(error,))


def _check(found: Recovered, schema: CompiledSchema) -> Reading:
    try:
        errors = faults_of(found, schema)
    except OverBudgetError as error:
        errors = (ValidationErrorItem(path="", code="too_large", message=str(error)),)
    bad = ParseErrorType.SCHEMA_INVALID if errors else None
    return Reading(bad, found.value, errors, found.repairs)


def _read_calls(found: Recovered, toolset: Toolset) -> Reading:
    """Decode tool calls that were written down: a list, or an object that holds it."""
    value: Any = found.value
    is_held = isinstance(value, dict) and CALLS in value
    result = decode_tool_calls(value[CALLS] if is_held else value, toolset)
    places, before = TextPlaces(found.text), f"/{CALLS}" if is_held else ""
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
    return Reading(
        ParseErrorType.SCHEMA_INVALID if errors else None,
        [action.flat() for action in result.actions],
        errors,
        found.repairs,
        coerced,
    )
