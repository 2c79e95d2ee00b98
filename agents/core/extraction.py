"""From what a model wrote to one JSON value, or to a located refusal (X-12, X-15).

1. Refuse what is too large, empty, or filtered by the provider.
2. Strict JSON, the whole text: done.
3. Otherwise the one object or array in it, behind a fence or prose; both are recorded.
4. Two candidates, a repeated key, NaN, a value cut off, a bare scalar: refused, never guessed.
"""

import json
import re
import string
from dataclasses import dataclass
from typing import Any

import jiter

from agents.core.brackets import Span, Structure, read_structure
from agents.core.positions import line_and_column, locate
from diagnostics.core.events import ParseErrorType, Repair, ValidationErrorItem

MAX_ANSWER_BYTES = 1024 * 1024
CUT_OFF = frozenset({"length", "max_tokens"})
FILTERED = frozenset({"content_filter", "refusal"})

_JITER_POSITION = re.compile(r" at line (\d+) column (\d+)$")
# What jiter says in the middle of a token; the token's first character is wanted.
_INSIDE_TOKEN = frozenset({"expected ident", "invalid number"})
_TOKEN_LETTERS = f"{string.ascii_letters}{string.digits}+-."
_FENCE_BEFORE = re.compile(r"(?:```|~~~)[\w-]*\s*\Z")
_REFUSAL = re.compile(
    r"\W*(?:i['\u2019]?m (?:very |really )?sorry|i am sorry|sorry,"
    r"|i (?:can['\u2019]?t|cannot|can not|won['\u2019]?t|am unable|must decline)"
    r"|unfortunately,? i|as an ai\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A value that was read, where it stood in the text, and what was passed over to read it."""

    value: Any
    text: str
    start: int
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no value was read; the first error carries line and column."""

    error_type: ParseErrorType
    errors: tuple[ValidationErrorItem, ...]


def read_answer(text: str, finish_reason: str | None = None) -> Answer | Refusal:
    """Read one object or array from a model's text; never raises, for any text."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text.encode()) > MAX_ANSWER_BYTES:
        return _refuse(text, ParseErrorType.NOT_JSON, 0, "answer is larger than 1 MiB")
    if finish_reason in FILTERED:
        return _refuse(
            text, ParseErrorType.REFUSAL, 0, "the provider or model declined to answer"
        )
    if not text.strip():
        return _refuse(
            text,
            ParseErrorType.EMPTY_OUTPUT,
            0,
            "the answer is empty; expected one JSON object",
        )
    found = _read(text)
    if finish_reason in CUT_OFF:
        return _after_cut(text, found)
    return found


def _read(text: str) -> Answer | Refusal:
    structure = read_structure(text)
    if structure.too_deep is not None:
        return _refuse(
            text,
            ParseErrorType.NOT_JSON,
            structure.too_deep,
            "nested deeper than 64 levels",
        )
    whole = _parse(text, Span(0, len(text)))
    if isinstance(whole, Answer):
        return (
            _refuse_scalar(text) if not isinstance(whole.value, dict | list) else whole
        )
    return _read_candidates(text, structure)


def _read_candidates(text: str, structure: Structure) -> Answer | Refusal:
    read = [(span, _parse(text, span)) for span in structure.spans]
    good = [
        (span, answer)
        for span, answer in read
        if isinstance(answer, Answer) and not _is_bracketed_prose(answer)
    ]
    bad = [
        refusal
        for span, refusal in read
        if isinstance(refusal, Refusal) and ":" in text[span.start : span.end]
    ]
    if bad:
        return bad[0]
    if structure.unclosed is not None:
        return _refuse_unclosed(text, structure)
    if len({json.dumps(answer.value, sort_keys=True) for _, answer in good}) > 1:
        return _refuse(
            text,
            ParseErrorType.MULTIPLE_OBJECTS,
            good[1][0].start,
            "a second, different JSON value; expected exactly one",
        )
    if not good:
        return _refuse_prose(text)
    span, answer = good[0]
    return Answer(answer.value, text, span.start, _passed_over(text, span, len(good)))


def _is_bracketed_prose(answer: Answer) -> bool:
    """`[1]` or `[]` in a sentence is a footnote, not an answer; a list of objects is one."""
    return isinstance(answer.value, list) and not any(
        isinstance(item, dict) for item in answer.value
    )


def _parse(text: str, span: Span) -> Answer | Refusal:
    part = text[span.start : span.end]
    try:
        value = jiter.from_json(
            part.encode(), allow_inf_nan=False, catch_duplicate_keys=True
        )
        # Numbers past a float's range, or past what Python prints, cannot be stored later.
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        return _refuse_syntax(text, span, str(error))
    return Answer(value, text, span.start)


def _refuse_syntax(text: str, span: Span, message: str) -> Refusal:
    position = _JITER_POSITION.search(message)
    said = message[: position.start()] if position else "number out of range"
    if said.startswith("Detected duplicate key"):
        repeated = locate(text, span.start).repeated_key
        at = span.start if repeated is None else repeated
        return _refuse(
            text,
            ParseErrorType.DUPLICATE_KEY,
            at,
            "this key was already given in the same object",
        )
    within = _offset(text[span.start : span.end], position) if position else 0
    at = span.start + within
    if said in _INSIDE_TOKEN:
        at -= len(text[span.start : at]) - len(
            text[span.start : at].rstrip(_TOKEN_LETTERS)
        )
    return _refuse(text, ParseErrorType.NOT_JSON, at, said)


def _offset(part: str, position: re.Match[str]) -> int:
    """Turn jiter's line and byte column into an offset of code points."""
    line, column = int(position[1]), int(position[2])
    lines = part.split("\n")
    before = sum(len(item) + 1 for item in lines[: line - 1])
    current = lines[line - 1] if line <= len(lines) else ""
    return before + len(current.encode()[: max(column - 1, 0)].decode(errors="ignore"))


def _after_cut(text: str, found: Answer | Refusal) -> Answer | Refusal:
    """X-15: a cut off answer counts only when its value had closed, unrepaired, before the cut."""
    if isinstance(found, Refusal):
        return Refusal(ParseErrorType.TRUNCATED, _with_hint(found.errors))
    if found.repairs:
        return _refuse(
            text,
            ParseErrorType.TRUNCATED,
            len(text),
            "the answer was cut off at the token limit",
        )
    line, column = line_and_column(text, len(text))
    return Answer(
        found.value,
        text,
        found.start,
        (Repair(kind="cut_after_end", line=line, column=column, lossless=False),),
    )


def _with_hint(
    errors: tuple[ValidationErrorItem, ...],
) -> tuple[ValidationErrorItem, ...]:
    cut = "the answer was cut off at the token limit; answer more briefly"
    return tuple(
        error.model_copy(update={"message": f"{cut} ({error.message})"})
        for error in errors
    )


def _refuse_unclosed(text: str, structure: Structure) -> Refusal:
    if structure.open_string is not None:
        return _refuse(
            text,
            ParseErrorType.TRUNCATED,
            structure.open_string,
            "this string is never closed",
        )
    return _refuse(
        text, ParseErrorType.TRUNCATED, len(text), "the text ends before the JSON does"
    )


def _refuse_scalar(text: str) -> Refusal:
    at = len(text) - len(text.lstrip())
    return _refuse(
        text, ParseErrorType.NOT_JSON, at, "a bare value; expected a JSON object"
    )


def _refuse_prose(text: str) -> Refusal:
    if _REFUSAL.match(text):
        return _refuse(text, ParseErrorType.REFUSAL, 0, "the model declined to answer")
    return _refuse(
        text,
        ParseErrorType.NOT_JSON,
        0,
        "no JSON object in the answer; expected one that begins with {",
    )


def _passed_over(text: str, span: Span, copies: int) -> tuple[Repair, ...]:
    before, after = text[: span.start], text[span.end :]
    fence = _FENCE_BEFORE.search(before)
    line, column = line_and_column(text, span.start)
    kinds = ["fence"] if fence else []
    prose = (before[: fence.start()] if fence else before) + after.strip().removeprefix(
        "```"
    ).removeprefix("~~~")
    kinds += ["prose"] if prose.strip("\ufeff \t\r\n") else []
    kinds += ["byte_order_mark"] if before.startswith("\ufeff") else []
    kinds += ["repeated_answer"] if copies > 1 else []
    return tuple(
        Repair(kind=kind, line=line, column=column, lossless=True) for kind in kinds
    )


def _refuse(text: str, error_type: ParseErrorType, at: int, message: str) -> Refusal:
    line, column = line_and_column(text, at)
    item = ValidationErrorItem(
        path="", code=error_type.value, message=message, line=line, column=column
    )
    return Refusal(error_type, (item,))
