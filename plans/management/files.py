"""JSON documents named on the command line; `-` is standard input."""

import sys
from pathlib import Path
from typing import Any

from failsoft.parsing.strict import JsonTextError, parse_json


def read_document(name: str, limit: int) -> tuple[Any, str]:
    """Return the JSON value of a file of at most `limit` bytes, and its text.

    Raises JsonTextError; its code is `unreadable` when the file cannot be read.
    """
    raw = _read(name, limit)
    return parse_json(raw, limit), raw.decode("utf-8-sig")


def _read(name: str, limit: int) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(limit + 1)
        with Path(name).open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise JsonTextError("unreadable", f"{name}: {reason}") from None


def describe(fault: dict[str, Any]) -> str:
    """Return a located violation as one line of text."""
    place = f"line {fault['line']}, column {fault['column']}"
    path = f" {fault['path']}" if fault["path"] else ""
    return f"{place}:{path} {fault['message']} [{fault['code']}]"
