"""JSON Lines of tool calls, decoded line by line: a bad line is answered, and the run goes on."""

from functools import partial
from typing import Any

from agents.core.actions.decoding import decode_tool_calls
from agents.core.actions.results import Leniency, ParseFailure, ParseResult
from agents.core.actions.toolsets import Toolset
from diagnostics.core.json_lines import Line, LineError, answer_line


def answer_calls(line: bytes, number: int, toolset: Toolset) -> Line:
    """Decode one line; a line that cannot be read gives an error with its place (1-based)."""
    return answer_line(line, number, partial(_decode, toolset), NOTHING)


def _decode(toolset: Toolset, asked: Line) -> Line:
    if "tool_calls" not in asked:
        raise LineError("expected tool_calls", code="missing")
    return _describe(decode_tool_calls(asked["tool_calls"], toolset))


def _describe(result: ParseResult) -> dict[str, Any]:
    return {
        "actions": [action.flat() for action in result.actions],
        "failures": [describe_failure(failure) for failure in result.failures],
        "coerced": [_describe_leniency(item) for item in result.coerced],
        "repairs": [repair.model_dump() for repair in result.repairs],
    }


def describe_failure(failure: ParseFailure) -> dict[str, Any]:
    """A failure as it is reported, without what the model wrote."""
    return {
        "tool_name": failure.tool_name,
        "tool_call_id": failure.tool_call_id,
        "path": failure.path,
        "code": failure.code,
        "message": failure.message,
        "entries": failure.entries,
        "line": failure.line,
        "column": failure.column,
    }


def _describe_leniency(item: Leniency) -> dict[str, Any]:
    return {
        "path": item.path,
        "kind": item.kind,
        "tool_name": item.tool_name,
        "tool_call_id": item.tool_call_id,
    }


NOTHING = _describe(ParseResult())
