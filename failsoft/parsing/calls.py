"""Tool calls written as markup, read whole: the name and every argument, or not at all.

The marks are rows of `makers.toml`. What follows a mark differs too much for rows:
named     one JSON object of arguments, which the grammar of answers reads
elements  an element for each parameter, or one JSON object, up to the closing tag
pairs     elements of a key and a value in turns, up to the closing tag
none      a program or a notation without a single reading as JSON: refused
"""

import json
import re
from collections.abc import Callable
from typing import Any

from failsoft.events import ParseErrorType
from failsoft.parsing.candidates import Candidate
from failsoft.parsing.faults import ParseFault, RefusalCause, RepairLedger, caused, cut_off
from failsoft.parsing.makers import MAKERS
from failsoft.parsing.tracing import read_valid

_ROWS = MAKERS["calls"]
# What follows these marks is JSON, and is the call.
_JSON = "json"
_WRITTEN = [
    (row["grammar"], re.compile(row["mark"], re.MULTILINE))
    for row in _ROWS
    if row["grammar"] not in (_JSON, "none")
]
_ANY = re.compile("|".join(re.sub(r"\?P<\w+>", "?:", row["mark"]) for row in _ROWS), re.MULTILINE)
MARKS = "|".join(re.sub(r"\?P<\w+>", "?:", row["mark"]) for row in _ROWS if row["grammar"] != _JSON)
# A text without any of these has no mark.
HINTS = (
    "<", ">>>", "functions.", "[ARGS]", "[TOOL_CALLS]", "Action", "Tool", "Function", "tool_code",
    "to=", "(",
)  # fmt: skip
_NAMESPACE = r"(?:[｜|]\s?DSML\s?[｜|]\s?|\w{1,40}:)?"
_PARAMETER = re.compile(
    rf"\s*<{_NAMESPACE}(?:parameter|param|argument|arg)(?:\s+name)?=[\"']?"
    r"(?P<key>[^\"'<>\n]{1,200})[\"']?(?P<attributes>\s[^<>\n]{0,100})?>"
)
_PARAMETER_END = re.compile(rf"</{_NAMESPACE}(?:parameter|param|argument|arg)\s*>")
_PAIR = re.compile(r"\s*<arg_key>\s*(?!\s)(?P<key>[^<>\n]{1,200}?)\s*</arg_key>\s*(?:<arg_value>)?")
_PAIR_END = re.compile(r"</arg_value>")
_CALL_END = re.compile(rf"\s*</{_NAMESPACE}(?:invoke|function|tool_call)\s*>")
_ANY_TAG = re.compile(rf"</?{_NAMESPACE}(?:parameter|param|argument|arg_key|arg_value|invoke)\b")
_END = "the closing tag of this tool call"
_SPACE = re.compile(r"\s*")
# A value that is meant to be JSON, not text.
_LIKE_JSON = re.compile(r"\s*(?:\{\s*[\"'}\w]|\[\s*[\"'\[{\]\d-])")
_STRING = re.compile(r"string=[\"']?(true|false)")


# Reads the JSON object at an offset.
ReadObject = Callable[[int], Candidate]


def call_markup(text: str) -> int | None:
    """Return the offset of a tool call written as markup; None without one.

    A mention of a mark in a sentence is none.
    """
    mark = _ANY.search(text) if any(hint in text for hint in HINTS) else None
    return None if mark is None else mark.start()


def are_calls(*values: object) -> bool:
    """Whether each value is a call written as JSON, with the keys of any maker."""
    keys = [set(pair) for pair in MAKERS["call_keys"]["pairs"]]
    return all(isinstance(it, dict) and any(pair <= it.keys() for pair in keys) for it in values)


def read_call(text: str, at: int, read_object: ReadObject) -> Candidate:
    """Return the call whose mark is at `at`; ParseFault unless it can be read whole."""
    for grammar, pattern in _WRITTEN:
        mark = pattern.match(text, at)
        if mark is None:
            continue
        name = next(part for part in mark.groupdict().values() if part)
        try:
            arguments, end, ledger = _read_arguments(text, mark.end(), grammar, read_object)
        except ParseFault as fault:
            # Faults inside of JSON arguments have places and causes of their own.
            is_placed = grammar == "named" or fault.error_type is ParseErrorType.TRUNCATED
            raise fault if is_placed else caused(at, RefusalCause.CALL_MARKUP) from None
        return Candidate({"name": name, "arguments": arguments}, at, end, ledger)
    raise caused(at, RefusalCause.CALL_MARKUP)


def _read_arguments(
    text: str, at: int, grammar: str, read_object: ReadObject
) -> tuple[dict[str, Any], int, RepairLedger]:
    space = _SPACE.match(text, at)
    opening = space.end() if space is not None else at
    if grammar == "named" or (grammar == "elements" and text.startswith("{", opening)):
        read = read_object(opening)
        end = read.end if grammar == "named" else _call_end(text, read.end)
        return read.value, end, read.ledger
    pattern, closing = (_PARAMETER, _PARAMETER_END) if grammar == "elements" else (_PAIR, _PAIR_END)
    arguments: dict[str, Any] = {}
    while (opened := pattern.match(text, at)) is not None:
        closed = closing.search(text, opened.end())
        key = opened["key"].strip()
        if closed is None and _CALL_END.search(text, opened.end()) is None:
            raise cut_off(opened.start() + len(opened[0]) - len(opened[0].lstrip()), _END)
        if closed is None or key in arguments:
            raise caused(at, RefusalCause.CALL_MARKUP)
        arguments[key] = _read_value(text[opened.end() : closed.start()], opened, at)
        at = closed.end()
    return arguments, _call_end(text, at), RepairLedger()


def _call_end(text: str, at: int) -> int:
    end = _CALL_END.match(text, at)
    if end is not None:
        return end.end()
    raise caused(at, RefusalCause.CALL_MARKUP) if text[at:].strip() else cut_off(len(text), _END)


def _read_value(raw: str, opened: re.Match[str], at: int) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a parameter: what it is as JSON, if it is JSON to the letter, or text.

    `1.10` and `007` are text; what looks like a broken object or array is refused.
    """
    text = raw.removeprefix("\n").removesuffix("\n")
    kind = _STRING.search(opened.groupdict().get("attributes") or "")
    if _ANY_TAG.search(raw):
        raise caused(at, RefusalCause.CALL_MARKUP)
    if kind is not None and kind[1] == "true":
        return text
    is_valid, value = read_valid(text)
    if is_valid and (isinstance(value, dict | list) or json.dumps(value) == text.strip()):
        return value
    if kind is not None or _LIKE_JSON.match(text):
        raise caused(at, RefusalCause.CALL_MARKUP)
    return text
