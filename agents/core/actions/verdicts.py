"""Whether an answer of tool calls counts: one action that can be applied is enough (s4).

The ladder goes on only when there is none; what failed beside a good action is counted, not
asked for again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.core.actions.decoding import decode_tool_calls
from agents.core.actions.policies import kind_of
from agents.core.actions.results import ParseFailure, ParseResult
from agents.core.actions.toolsets import Toolset
from agents.core.interpreting import Misunderstood, Understood
from agents.core.recovery.refusals import CUT_OFF_REASONS, DECLINED_REASONS, declines
from diagnostics.core.events import (
    MAX_ERRORS,
    Coercion,
    ParseErrorType,
    ValidationErrorItem,
)

MAX_PATH = 1_000
_UNREADABLE = frozenset(ParseErrorType)
_NO_CALL = {
    ParseErrorType.REFUSAL: "expected a call of a tool; the model declined",
    ParseErrorType.TRUNCATED: "expected a call of a tool before the answer was cut off",
    ParseErrorType.EMPTY_OUTPUT: "expected a call of a tool; the answer is empty",
    ParseErrorType.NOT_JSON: "expected a call of a tool, got only text",
}


@dataclass(frozen=True, slots=True)
class JudgedCalls:
    """An answer's actions and failures, and what the ladder makes of them."""

    result: ParseResult
    verdict: Understood | Misunderstood
    # What the model wrote, calls and text, for previews and feedback; not redacted.
    written: str


def judge_calls(
    calls: Sequence[Any], text: str, finish_reason: str | None, toolset: Toolset
) -> JudgedCalls:
    """Decode an answer's calls and say whether any can be used; never raises."""
    result = decode_tool_calls(list(calls), toolset)
    coerced = tuple(
        Coercion(path=item.pointer[:MAX_PATH], kind=item.kind)
        for item in result.coerced[:MAX_ERRORS]
    )
    repairs = result.repairs[:MAX_ERRORS]
    if result.actions:
        verdict: Understood | Misunderstood = Understood(
            result.to_json(), repairs, coerced
        )
    else:
        error_type = _error_type(result, text, finish_reason)
        errors = failure_items(result.failures) or _no_call(error_type)
        verdict = Misunderstood(error_type, errors, repairs, coerced)
    return JudgedCalls(result, verdict, _written(calls, text))


def failure_items(
    failures: Sequence[ParseFailure],
) -> tuple[ValidationErrorItem, ...]:
    """Failures as the located errors of an attempt; the pointers lead into the list of calls."""
    return tuple(
        ValidationErrorItem(
            path=item.pointer[:MAX_PATH],
            code=item.code,
            message=item.message,
            line=item.line,
            column=item.column,
        )
        for item in failures[:MAX_ERRORS]
    )


def _no_call(error_type: ParseErrorType) -> tuple[ValidationErrorItem, ...]:
    message = _NO_CALL[error_type]
    return (ValidationErrorItem(path="", code="no_tool_call", message=message),)


def _error_type(
    result: ParseResult, text: str, finish_reason: str | None
) -> ParseErrorType:
    if finish_reason in CUT_OFF_REASONS:
        return ParseErrorType.TRUNCATED
    if finish_reason in DECLINED_REASONS:
        return ParseErrorType.REFUSAL
    if result.failures:
        codes = {failure.code for failure in result.failures}
        # All for one reason, and one of reading: that is what the answer suffers from.
        only = codes.pop() if len(codes) == 1 else ""
        return (
            ParseErrorType(only)
            if only in _UNREADABLE
            else ParseErrorType.SCHEMA_INVALID
        )
    if not text.strip():
        return ParseErrorType.EMPTY_OUTPUT
    return ParseErrorType.REFUSAL if declines(text) else ParseErrorType.NOT_JSON


def _written(calls: Sequence[Any], text: str) -> str:
    if not calls:
        return text
    try:
        listed = json.dumps(list(calls), ensure_ascii=False, indent=1, default=repr)
    except (ValueError, TypeError, RecursionError):
        listed = f"[{', '.join(kind_of(call) for call in calls)}]"
    return f"{text}\n{listed}" if text.strip() else listed
