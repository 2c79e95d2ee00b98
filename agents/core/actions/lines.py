"""JSON Lines of tool calls, decoded line by line: a bad line is answered, and the run goes on."""

import json
from typing import Any

from agents.core.actions.decoding import decode_tool_calls
from agents.core.actions.policies import kind_of
from agents.core.actions.results import Leniency, ParseFailure, ParseResult
from agents.core.actions.toolsets import Toolset

MAX_LINE_BYTES = 16 * 1024 * 1024
# Longer integers are refused by int() or cost more than they say.
MAX_DIGITS = 4_000


class LineError(Exception):
    """a line is no `{"id", "tool_calls"}`; where, and why"""

    def __init__(
        self, code: str, message: str, column: int = 1, identity: object = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.column = code, message, column
        self.identity = identity


def answer_line(line: bytes, number: int, toolset: Toolset) -> dict[str, Any]:
    """Decode one line; a line that cannot be read gives an error with its place (1-based)."""
    try:
        document = _read_line(line)
    except LineError as error:
        place = {"line": number, "column": error.column, "message": error.message}
        told = {"type": error.code, **place}
        return {**_describe(error.identity, ParseResult()), "error": told}
    result = decode_tool_calls(document["tool_calls"], toolset)
    return _describe(document.get("id"), result)


def _read_line(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise LineError("too_large", f"a line has at most {MAX_LINE_BYTES} bytes")
    document = _parse(line)
    if not isinstance(document, dict):
        raise LineError("object_type", f"expected an object, got {kind_of(document)}")
    if "tool_calls" not in document:
        identity = document.get("id")
        raise LineError("missing", "expected tool_calls", identity=identity)
    return document


def _parse(line: bytes) -> object:
    try:
        text = line.decode("utf-8-sig")
        return json.loads(text, parse_int=_read_integer)
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode("utf-8", "replace")) + 1
        raise LineError("not_utf8", "expected UTF-8", column) from None
    except json.JSONDecodeError as error:
        raise LineError("not_json", error.msg.lower(), error.colno) from None
    except RecursionError:
        raise LineError("too_deep", "nested too deep") from None


def _read_integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def _describe(identity: object, result: ParseResult) -> dict[str, Any]:
    return {
        "id": identity,
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
