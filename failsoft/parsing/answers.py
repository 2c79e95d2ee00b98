"""From model output to one object or array, or to a located refusal.

1. Refuse text that is too large, filtered by the provider, or empty.
2. If the whole text is strict JSON, return it.
3. Otherwise drop thinking and read the only object or array in the text, with the repairs
   that leave exactly one reading; every repair is recorded.
4. Refuse everything else, with the position and what was expected there.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, NamedTuple, overload

import jiter
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from typing_extensions import TypeVar

from failsoft.events import MAX_ERRORS, Coercion, ParseErrorType, Repair, ValidationErrorItem
from failsoft.expectations import expectation
from failsoft.json_values import pointer_of
from failsoft.parsing.candidates import Candidate
from failsoft.parsing.escapes import doubtful_in_valid, has_doubtful_escapes, is_written_as_tex
from failsoft.parsing.faults import (
    Lines,
    ParseFault,
    RefusalCause,
    RepairLedger,
    caused,
    cut_off,
    excerpt,
    line_and_column,
    offset_of,
    unreadable,
)
from failsoft.parsing.finding import NOTHING, find_answer
from failsoft.parsing.grammar import Grammar
from failsoft.parsing.makers import CUT, FinishClass, ending_of
from failsoft.parsing.tracing import MAX_BYTES, Trace, read_valid

_QUOTED_LINES = re.compile(r"(?:^[ \t]{0,3}>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_MARK = re.compile(r"^[ \t]{0,3}(?:>[ \t]?)+", re.MULTILINE)


def drop_block_quotes(text: str, ledger: RepairLedger) -> str:
    """Blank out the markers of quoted lines with a bracket, keeping offsets."""
    if ">" not in text:
        return text

    def blank(lines: re.Match[str]) -> str:
        if not any(bracket in lines[0] for bracket in "{[｛［"):
            return lines[0]
        ledger.note(lines.start() + lines[0].index(">"), "block_quote")
        return _MARK.sub(lambda mark: " " * len(mark[0]), lines[0])

    return _QUOTED_LINES.sub(blank, text)


_SURROGATE = re.compile("[\ud800-\udfff]")
_OPENERS = re.compile(r"(?:(?:```|~~~)\w*)?[\[{\s]+")
_HOLDS_DOCUMENT = re.compile(r"[\ufeff\s>]*(?:(?:```|~~~)[\w-]*\s*)?[{\[]")
_USUAL = frozenset({None, FinishClass.STOP, FinishClass.TOOL_CALLS, FinishClass.OTHER})
MAX_TEXT = 1_000
_CUT = "the rest of the answer, which was cut off at the token limit"
Value = TypeVar("Value", default=dict[str, Any] | list[Any])
Read = TypeVar("Read")


class Recovered(NamedTuple, Generic[Value]):
    """The only value in a text, and the repairs that were needed to read it."""

    value: Value
    text: str
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedAnswer:
    """Why no value was read; line and column are 1-based, in code points."""

    error_type: ParseErrorType
    line: int
    column: int
    expected: str
    excerpt: str
    # What is wrong there, more exactly than the type; the type where nothing more is known.
    cause: str
    # What a schema expected elsewhere; empty where there is no value.
    by_schema: tuple[ValidationErrorItem, ...] = ()

    @property
    def errors(self) -> tuple[ValidationErrorItem, ...]:
        """Every error with its place: those of the schema, else the one of the text."""
        return self.by_schema or (self.reason,)

    @property
    def message(self) -> str:
        """The position, what was expected, and the line with a caret."""
        return f"line {self.line}, column {self.column}: expected {self.expected}\n{self.excerpt}"

    @property
    def reason(self) -> ValidationErrorItem:
        """The refusal for storage, without the excerpt, which could split a secret."""
        return ValidationErrorItem(
            path="",
            code=self.cause,
            message=f"expected {self.expected}",
            line=self.line,
            column=self.column,
        )


@overload
def recover(text: str | None, finish_reason: str | None = None) -> Recovered | RefusedAnswer: ...
@overload
def recover(
    text: str | None, finish_reason: str | None = None, *, schema: type[Read]
) -> Recovered[Read] | RefusedAnswer: ...
def recover(
    text: str | None, finish_reason: str | None = None, *, schema: Any = None
) -> Recovered[Any] | RefusedAnswer:
    """Read one object or array from model output; never raises, for any text.

    With `schema`, a pydantic model or another type that pydantic knows, the value is an instance
    of it, validated as JSON; an answer that breaks the schema is refused, with an error and its
    place for each field.
    """
    for name, given in (("text", text), ("finish_reason", finish_reason)):
        if not isinstance(given, str | None):
            raise TypeError(f"{name}: expected a string or None, got {given!r:.60}")
    validate = None if schema is None else _validation(schema)
    answer = _recover(text or "", finish_reason)
    if validate is None or isinstance(answer, RefusedAnswer):
        return answer
    try:
        instance = validate(json.dumps(answer.value))
    except ValidationError as error:
        return _refuse_by_schema(answer, error)
    return Recovered(instance, answer.text, answer.repairs)


def _validation(schema: Any) -> Callable[[str], Any]:  # noqa: ANN401 - a type, or a mistake
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_validate_json
    try:
        return _adapter(schema).validate_json
    except (TypeError, PydanticUserError, PydanticUndefinedAnnotation) as error:
        expected, reason = "a pydantic model or a type it knows", str(error).partition("\n")[0]
        raise TypeError(f"schema: expected {expected}, got {schema!r:.60}: {reason}") from error


@lru_cache(maxsize=100)
def _adapter(schema: type[Value]) -> TypeAdapter[Value]:
    if hasattr(schema, "__get_validators__"):
        raise TypeError("a model of pydantic 1")
    adapter = TypeAdapter(schema)
    adapter.rebuild()  # a name that is not defined is an error now, not at an answer
    return adapter


def _recover(text: str, finish_reason: str | None) -> Recovered | RefusedAnswer:
    ending = ending_of(finish_reason)
    if ending in _USUAL:
        # The fast path: most answers are strict JSON.
        value = _read_strict(text)
        if value is not None and not has_doubtful_escapes(text):
            return Recovered(value, text)
    try:
        value, ledger = _read(text, ending)
    except ParseFault as fault:
        if ending in CUT:
            fault = cut_off(fault.offset, fault.expected)
        line, column = line_and_column(text, fault.offset)
        shown_line = excerpt(text, fault.offset)
        cause = fault.cause or fault.error_type
        return RefusedAnswer(
            fault.error_type, line, column, fault.expected, shown_line, cause.value
        )
    return Recovered(value, text, ledger.repairs(text))


def _refuse_by_schema(answer: Recovered, error: ValidationError) -> RefusedAnswer:
    places = TextPlaces(answer.text)
    errors = tuple(
        places.error(
            _pointer_in(answer.value, fault["loc"], is_missing=fault["type"] == "missing"),
            fault["type"],
            expectation(fault, fault.get("input")),
            is_key=fault["type"] == "extra_forbidden" or fault["loc"][-1:] == ("[key]",),
        )
        for fault in error.errors(include_url=False)[:MAX_ERRORS]
    )
    first = errors[0]
    line, column = first.line or 1, first.column or 1
    return RefusedAnswer(
        ParseErrorType.SCHEMA_INVALID,
        line,
        column,
        first.message.removeprefix("expected "),
        excerpt(answer.text, offset_of(answer.text, line, column)),
        first.code or ParseErrorType.SCHEMA_INVALID,
        errors,
    )


def _pointer_in(value: Any, place: tuple[int | str, ...], *, is_missing: bool) -> str:  # noqa: ANN401 - any JSON
    """Return a pointer into a value without what pydantic adds: variants of a union, `[key]`."""
    path = []
    for number, part in enumerate(place, start=1):
        is_index = isinstance(part, int) and isinstance(value, list) and part < len(value)
        if is_index or (isinstance(value, dict) and part in value):
            value = value[part]
        elif not (is_missing and number == len(place)):
            continue
        path.append(part)
    return pointer_of(path)


def trace(text: str) -> Trace:
    """Return the offsets of the keys and values of a text that `recover` can read."""
    offsets = Trace()
    if _read_as_written(text) is not None:
        start = len(text) - len(text.lstrip())
        Grammar(text, RepairLedger(), offsets, as_written=True).read_root(start, text[start])
    else:
        _read_damaged(text, RepairLedger(), offsets)
    return offsets


class TextPlaces:
    """Locates errors and leniencies in a recovered text by line and column."""

    def __init__(self, text: str) -> None:
        self._trace, self._lines = trace(text), Lines(text)

    def error(
        self,
        path: str,
        code: str,
        message: str,
        pointer: str | None = None,
        *,
        is_key: bool = False,
    ) -> ValidationErrorItem:
        """Return an error about `path`, located at `pointer` if that is given.

        With `is_key` it is located at the key.
        """
        place = self._trace.pointed(path if pointer is None else pointer, key=is_key)
        line, column = self._lines.place(place)
        return ValidationErrorItem(
            path=path[:MAX_TEXT], code=code, message=message[:MAX_TEXT], line=line, column=column
        )

    def coercion(
        self, path: str, kind: str, pointer: str | None = None, *, is_key: bool = False
    ) -> Coercion:
        """Return a leniency, located at the value or, with `is_key`, at its key."""
        place = self._trace.pointed(path if pointer is None else pointer, key=is_key)
        line, column = self._lines.place(place)
        return Coercion(path=path[:MAX_TEXT], kind=kind, line=line, column=column)


def _read(text: str, ending: FinishClass | None) -> tuple[Any, RepairLedger]:
    if ending is FinishClass.MALFORMED:
        raise caused(0, RefusalCause.MALFORMED_CALL)
    if ending is FinishClass.BLOCK:
        raise ParseFault(0, "an answer; the provider or the model declined", ParseErrorType.REFUSAL)
    ledger = RepairLedger()
    value = _read_as_written(text)
    if value is None:
        value = _read_bounded(text, ledger)
    elif (doubtful := doubtful_in_valid(text)) is not None:
        ledger.note(doubtful, "doubtful_escape")
    if ending in CUT:
        # Refuse a truncated answer unless its root was closed, unrepaired, before the cut.
        if ledger.touches_root():
            raise cut_off(len(text), _CUT)
        ledger.note(len(text), "tail_cut")
    return value, ledger


def _read_as_written(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return strict JSON like `_read_strict`; None where its escapes are commands of TeX."""
    value = _read_strict(text)
    return None if value is not None and is_written_as_tex(text) else value


def _read_strict(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a strict JSON object or array within the bounds; None for anything else."""
    is_valid, value = read_valid(text)
    return value if is_valid and (type(value) is dict or type(value) is list) else None


def _read_bounded(text: str, ledger: RepairLedger) -> Any:  # noqa: ANN401 - any JSON
    if len(text) > MAX_BYTES:
        raise unreadable(0, "at most 1 MiB of text")
    if _SURROGATE.search(text) is not None:
        # Read a text with lone surrogates, which must all be outside of the answer.
        offsets = Trace()
        answer = _read_damaged(text, ledger, offsets)
        surrogate = _SURROGATE.search(text, answer.start, answer.end)
        if surrogate is not None:
            raise caused(offsets.last_before(surrogate.start()), RefusalCause.HALF_CHARACTER)
        return answer.value
    if len(text.encode()) > MAX_BYTES:
        raise unreadable(0, "at most 1 MiB of text")
    return _read_damaged(text, ledger, None).value


def _read_damaged(text: str, ledger: RepairLedger, places: Trace | None) -> Candidate:
    stripped = text.strip()
    if not stripped:
        raise ParseFault(0, "an answer; it is empty", ParseErrorType.EMPTY_OUTPUT)
    if _OPENERS.fullmatch(stripped):
        raise cut_off(0, "more than opening brackets")
    if stripped[0] == '"' and _is_bare_string(stripped):
        raise unreadable(0, NOTHING)
    answer_text = drop_block_quotes(text, ledger)
    answer = find_answer(answer_text, ledger, places)
    # Refuse strings that span quoted lines: they contain the markers of the lines.
    broken = ledger.first("raw_newline", "line_continuation")
    if broken is not None and ledger.has("block_quote"):
        raise unreadable(broken, "the end of this string, which spans quoted lines")
    return answer


def _is_bare_string(text: str) -> bool:
    """Whether a text is one JSON string that does not contain a document."""
    inner: Any = text
    while isinstance(inner, str) and inner.startswith('"'):
        try:
            inner = jiter.from_json(inner.encode(errors="surrogatepass"))
        except ValueError:
            return False
    return not isinstance(inner, str) or _HOLDS_DOCUMENT.match(inner) is None
