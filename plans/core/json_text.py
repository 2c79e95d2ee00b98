"""Strict JSON out of a text: one reading or a located refusal, never a guess."""

import re
from dataclasses import dataclass
from typing import Any

import jiter

from plans.core.contract import MAX_DEPTH, MAX_PAYLOAD_BYTES

_PLACE = re.compile(r"(.*?)(?: at line (\d+) column (\d+))?", re.DOTALL)
_BOM = b"\xef\xbb\xbf"


@dataclass
class JsonTextError(Exception):
    """The text is not one JSON value; says why, and at which line and column."""

    code: str
    message: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"

    def as_dict(self) -> dict[str, Any]:
        """Return the refusal in the shape of a located violation of the root."""
        return {
            "path": "",
            "code": self.code,
            "message": self.message,
            "line": self.line,
            "column": self.column,
        }


def parse_json(raw: bytes, limit: int = MAX_PAYLOAD_BYTES) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON value of UTF-8 text of at most `limit` bytes.

    Raises JsonTextError: `too_large`, `not_json`, `duplicate_key`, `too_deep`. NaN,
    infinities, lone surrogates and anything after the value are refused; a byte order
    mark is not part of the text.
    """
    if len(raw) > limit:
        raise JsonTextError("too_large", f"expected at most {limit} bytes, got {len(raw)}")
    text = raw.removeprefix(_BOM)
    try:
        return jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise _located(text, str(error)) from None


def _located(raw: bytes, message: str) -> JsonTextError:
    match = _PLACE.fullmatch(message)
    what, line, byte_column = match[1], int(match[2] or 1), int(match[3] or 1)  # type: ignore[index] # it matches any text
    before = raw.split(b"\n")[line - 1][: max(byte_column - 1, 0)]
    column = len(before.decode("utf-8", "replace")) + 1
    return JsonTextError(*_classify(what), line, column)


def _classify(what: str) -> tuple[str, str]:
    if what.startswith("Detected duplicate key"):
        return "duplicate_key", what.replace("Detected duplicate key", "this key appears twice:")
    if what.startswith("recursion limit"):
        return "too_deep", f"expected at most {MAX_DEPTH} levels"
    return "not_json", f"this is not JSON: {what}"
