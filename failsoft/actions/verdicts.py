"""Whether an answer of tool calls counts: one action that can be applied is enough.

The ladder goes on only when there is none; what failed beside a good action is counted, not
asked for again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from failsoft.actions.decoding import decode_tool_calls
from failsoft.actions.envelopes import written_calls
from failsoft.actions.policies import kind_of
from failsoft.actions.results import ParseFailure, ParseResult
from failsoft.actions.toolsets import Toolset
from failsoft.events import MAX_ERRORS, Coercion, ParseErrorType, ValidationErrorItem
from failsoft.parsing import Recovered, RefusedAnswer, recover
from failsoft.parsing.surroundings import CUT_OFF_REASONS, DECLINED_REASONS
from failsoft.retry.answers import Misunderstood, Understood

MAX_PATH = 1_000
NO_CALL = "no_tool_call"


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
    """Decode an answer's calls and say whether any can be used; never raises.

    Calls that stand in the text count when there are no native ones.
    """
    found = Recovered([], text) if calls else recover(text, finish_reason)
    read = list(calls)
    if isinstance(found, Recovered):
        read = read or written_calls(found.value) or []
    result = decode_tool_calls(read, toolset)
    repairs = (*found.repairs, *result.repairs) if isinstance(found, Recovered) else ()
    coerced = tuple(
        Coercion(path=item.pointer[:MAX_PATH], kind=item.kind)
        for item in result.coerced[:MAX_ERRORS]
    )
    if result.actions:
        verdict: Understood | Misunderstood = Understood(
            result.to_json(), repairs[:MAX_ERRORS], coerced
        )
    else:
        refused = _refuse(found, result, finish_reason)
        verdict = Misunderstood(*refused, repairs[:MAX_ERRORS], coerced)
    return JudgedCalls(result, verdict, _written(calls, text))


def _refuse(
    found: Recovered | RefusedAnswer, result: ParseResult, finish_reason: str | None
) -> tuple[ParseErrorType, tuple[ValidationErrorItem, ...]]:
    """Why an answer without a usable action is refused, and where."""
    if isinstance(found, RefusedAnswer):
        message = f"expected a call of a tool: {found.expected}"
        item = ValidationErrorItem(
            path="", code=NO_CALL, message=message, line=found.line, column=found.column
        )
        return found.error_type, (item,)
    if not result.failures:
        item = ValidationErrorItem(
            path="", code=NO_CALL, message="expected at least one call of a tool"
        )
        return ParseErrorType.SCHEMA_INVALID, (item,)
    return _error_type(result, finish_reason), failure_items(result.failures)


def failure_items(failures: Sequence[ParseFailure]) -> tuple[ValidationErrorItem, ...]:
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


def _error_type(result: ParseResult, finish_reason: str | None) -> ParseErrorType:
    if finish_reason in CUT_OFF_REASONS:
        return ParseErrorType.TRUNCATED
    if finish_reason in DECLINED_REASONS:
        return ParseErrorType.REFUSAL
    codes = {failure.code for failure in result.failures}
    # All for one reason, and one of reading: that is what the answer suffers from.
    only = codes.pop() if len(codes) == 1 else ""
    return ParseErrorType(only) if only in [*ParseErrorType] else ParseErrorType.SCHEMA_INVALID


def _written(calls: Sequence[Any], text: str) -> str:
    if not calls:
        return text
    try:
        listed = json.dumps(list(calls), ensure_ascii=False, indent=1, default=repr)
    except (ValueError, TypeError, RecursionError):
        listed = f"[{', '.join(kind_of(call) for call in calls)}]"
    return f"{text}\n{listed}" if text.strip() else listed
