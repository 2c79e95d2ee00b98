"""Whether an answer of tool calls is valid: one applicable action is enough.

Without one, the retry loop continues. Failed calls alongside a valid action are counted but not
retried.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from failsoft.actions.decoding import decode_tool_calls, written_calls
from failsoft.actions.results import ParseFailure, ParseResult
from failsoft.actions.toolsets import Toolset, kind_of
from failsoft.events import MAX_ERRORS, Coercion, ParseErrorType, ValidationErrorItem
from failsoft.parsing import Recovered, RefusedAnswer, recover
from failsoft.parsing.makers import CUT, FinishClass, ending_of
from failsoft.retry.answers import Misunderstood, Understood

MAX_PATH = 1_000
NO_CALL = "no_tool_call"


@dataclass(frozen=True, slots=True)
class JudgedCalls:
    """The actions and failures of an answer, and the verdict for the retry loop."""

    result: ParseResult
    verdict: Understood | Misunderstood
    # The calls and text of the model, for previews and feedback; not redacted.
    written: str


def judge_calls(
    calls: Sequence[Any], text: str, finish_reason: str | None, toolset: Toolset
) -> JudgedCalls:
    """Decode the calls of an answer and return whether any is usable; never raises.

    Calls in the text are used when there are no native ones.
    """
    outcome = Recovered([], text) if calls else recover(text, finish_reason)
    candidates = list(calls)
    if isinstance(outcome, Recovered):
        candidates = candidates or written_calls(outcome.value) or []
    result = decode_tool_calls(candidates, toolset)
    repairs = (*outcome.repairs, *result.repairs) if isinstance(outcome, Recovered) else ()
    coerced = tuple(
        Coercion(path=item.pointer[:MAX_PATH], kind=item.kind)
        for item in result.coerced[:MAX_ERRORS]
    )
    if result.actions:
        verdict: Understood | Misunderstood = Understood(
            result.to_json(), repairs[:MAX_ERRORS], coerced
        )
    else:
        refusal = _refuse(outcome, result, finish_reason)
        verdict = Misunderstood(*refusal, repairs[:MAX_ERRORS], coerced)
    return JudgedCalls(result, verdict, _written(calls, text))


def _refuse(
    outcome: Recovered | RefusedAnswer, result: ParseResult, finish_reason: str | None
) -> tuple[ParseErrorType, tuple[ValidationErrorItem, ...]]:
    if isinstance(outcome, RefusedAnswer):
        message = f"expected a call of a tool: {outcome.expected}"
        item = ValidationErrorItem(
            path="", code=NO_CALL, message=message, line=outcome.line, column=outcome.column
        )
        return outcome.error_type, (item,)
    if not result.failures:
        item = ValidationErrorItem(
            path="", code=NO_CALL, message="expected at least one call of a tool"
        )
        return ParseErrorType.SCHEMA_INVALID, (item,)
    return _error_type(result, finish_reason), failure_items(result.failures)


def failure_items(failures: Sequence[ParseFailure]) -> tuple[ValidationErrorItem, ...]:
    """Return failures as located errors of an attempt, with pointers into the list of calls."""
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
    ending = ending_of(finish_reason)
    if ending in CUT:
        return ParseErrorType.TRUNCATED
    if ending is FinishClass.BLOCK:
        return ParseErrorType.REFUSAL
    codes = {failure.code for failure in result.failures}
    # A single parse error in all failures is the error of the answer.
    code = codes.pop() if len(codes) == 1 else ""
    return ParseErrorType(code) if code in [*ParseErrorType] else ParseErrorType.SCHEMA_INVALID


def _written(calls: Sequence[Any], text: str) -> str:
    if not calls:
        return text
    try:
        calls_text = json.dumps(list(calls), ensure_ascii=False, indent=1, default=repr)
    except (ValueError, TypeError, RecursionError):
        calls_text = f"[{', '.join(kind_of(call) for call in calls)}]"
    return f"{text}\n{calls_text}" if text.strip() else calls_text
