"""JSON documents named on the command line; `-` is standard input."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from failsoft.parsing.strict import JsonTextError, parse_json


class DocumentError(Exception):
    """The document cannot be read; `fault` says where, like a located violation."""

    def __init__(self, fault: dict[str, Any]) -> None:
        super().__init__(fault["message"])
        self.fault = fault


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A JSON value and the text it was read from."""

    value: Any
    text: str


def read_document(name: str, limit: int) -> JsonFile:
    """Read and parse a file of at most `limit` bytes, or raise DocumentError."""
    raw = _read(name, limit)
    try:
        value = parse_json(raw, limit)
    except JsonTextError as error:
        raise DocumentError(error.as_dict()) from None
    return JsonFile(value, raw.decode("utf-8-sig"))


def _read(name: str, limit: int) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(limit + 1)
        with Path(name).open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise DocumentError(_unreadable(f"{name}: {reason}")) from None


def _unreadable(message: str) -> dict[str, Any]:
    return {
        "path": "",
        "code": "unreadable",
        "message": message,
        "line": 1,
        "column": 1,
    }


def describe(fault: dict[str, Any]) -> str:
    """Return a located violation as one line for people."""
    place = f"line {fault['line']}, column {fault['column']}"
    path = f" {fault['path']}" if fault["path"] else ""
    return f"{place}:{path} {fault['message']} [{fault['code']}]"
