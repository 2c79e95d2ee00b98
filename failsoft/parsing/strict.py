"""Strict JSON with located errors, and the positions of faults in a text."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any

import jiter

from failsoft.json_values import escape_pointer
from failsoft.parsing.faults import line_and_column
from failsoft.parsing.tracing import MAX_BYTES, MAX_DEPTH

_PLACE = re.compile(r"(.*?)(?: at line (\d+) column (\d+))?", re.DOTALL)
_BOM = b"\xef\xbb\xbf"


@dataclass
class JsonTextError(Exception):
    """The text is not one JSON value: the reason, line and column."""

    code: str
    message: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"

    def as_dict(self) -> dict[str, Any]:
        """Return the refusal in the shape of a located fault of the root."""
        return {
            "path": "",
            "code": self.code,
            "message": self.message,
            "line": self.line,
            "column": self.column,
        }


def parse_json(raw: bytes, limit: int = MAX_BYTES, *, allow_inf_nan: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON value of UTF-8 text of at most `limit` bytes.

    Raises JsonTextError: `too_large`, `not_json`, `duplicate_key`, `too_deep`. Lone
    surrogates and anything after the value are refused, and unless allowed NaN and
    infinities; a byte order mark is not part of the text.
    """
    if len(raw) > limit:
        raise JsonTextError("too_large", f"expected at most {limit} bytes, got {len(raw)}")
    text = raw.removeprefix(_BOM)
    try:
        return jiter.from_json(text, allow_inf_nan=allow_inf_nan, catch_duplicate_keys=True)
    except ValueError as error:
        raise _located(text, str(error)) from None


def _located(raw: bytes, message: str) -> JsonTextError:
    match = _PLACE.fullmatch(message if raw.strip() else "it is empty")
    reason, line, byte_column = match[1], int(match[2] or 1), int(match[3] or 1)  # type: ignore[index] # matches any text
    # Line by line: a list of four million lines would cost more than the text.
    head = b"".join(islice(BytesIO(raw), line - 1, line))[: max(byte_column - 1, 0)]
    column = len(head.decode("utf-8", "ignore")) + 1
    if _is_broken_before(raw, line, byte_column):
        reason = "it is not UTF-8"
    return JsonTextError(*_classify(reason), line, column)


def _is_broken_before(raw: bytes, line: int, byte_column: int) -> bool:
    """Whether a text is not UTF-8, there or before."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        at = error.start
        return (raw.count(b"\n", 0, at) + 1, at - raw.rfind(b"\n", 0, at)) <= (line, byte_column)
    return False


def _classify(reason: str) -> tuple[str, str]:
    if reason.startswith("Detected duplicate key"):
        return "duplicate_key", reason.replace("Detected duplicate key", "this key appears twice:")
    if reason.startswith("recursion limit"):
        return "too_deep", f"expected at most {MAX_DEPTH} levels"
    return "not_json", f"this is not JSON: {reason}"


# For a text with blanked escaped quotes, so that no pattern needs backtracking.
_TOKEN = re.compile(r'(?P<mark>[{}\[\],:])|(?P<string>"[^"]*")|(?P<scalar>[^\s{}\[\],:"]+)')


def locate_faults(text: str, faults: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each fault with the line and column of the value at its `path`.

    A missing value is located at the start of its object. `text` is valid JSON; one linear
    pass.
    """
    with_parents = {""}
    for fault in faults:
        pointer = fault["path"]
        while pointer not in with_parents:
            with_parents.add(pointer)
            pointer = pointer.rpartition("/")[0]
    offsets = locate(text, with_parents)
    rows = []
    for fault in faults:
        line, column = line_and_column(text, _nearest(offsets, fault["path"]))
        rows.append({**fault, "line": line, "column": column})
    return rows


def locate(text: str, pointers: set[str]) -> dict[str, int]:
    offsets: dict[str, int] = {}
    frames: list[_Frame] = []
    blanked = text.replace(r"\\", "__").replace(r"\"", "__")
    for token in _TOKEN.finditer(blanked):
        mark = token.group() if token.lastgroup == "mark" else ""
        frame = frames[-1] if frames else None
        if frame and frame.expects_key and token.lastgroup == "string":
            frame.key = json.loads(text[token.start() : token.end()])
        elif mark == "," and frame:
            frame.index, frame.key = frame.index + 1, None
        elif mark in {"}", "]"}:
            del frames[-1:]
        elif mark not in {":", ","}:
            pointer = frame.pointer() if frame else ""
            if pointer in pointers:
                offsets.setdefault(pointer, token.start())
            if mark:
                frames.append(_Frame(pointer, mark == "{"))
    return offsets


@dataclass(slots=True)
class _Frame:
    prefix: str
    is_object: bool
    index: int = 0
    key: str | None = None

    @property
    def expects_key(self) -> bool:
        return self.is_object and self.key is None

    def pointer(self) -> str:
        if not self.is_object:
            return f"{self.prefix}/{self.index}"
        return f"{self.prefix}/{escape_pointer(self.key or '')}"


def _nearest(offsets: dict[str, int], pointer: str) -> int:
    while pointer and pointer not in offsets:
        pointer = pointer.rpartition("/")[0]
    return offsets.get(pointer, 0)
