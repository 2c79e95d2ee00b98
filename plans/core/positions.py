"""Where values stand in a JSON text: 1-based lines and columns in code points."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from plans.core.violations import Violation

# Of a text whose escaped quotes are blanked: a hundred megabytes need no memory to go back.
_TOKEN = re.compile(r'(?P<mark>[{}\[\],:])|(?P<string>"[^"]*")|(?P<scalar>[^\s{}\[\],:"]+)')


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column of a character, or of the end of the text."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def locate_violations(text: str, found: list[Violation]) -> list[dict[str, Any]]:
    """Return each violation with the line and column of the value it points at.

    A value that is missing stands where the object that lacks it begins. `text` is
    valid JSON; one linear pass.
    """
    offsets = locate(text, _with_parents(violation.path for violation in found))
    located = []
    for violation in found:
        line, column = line_and_column(text, _nearest(offsets, violation.path))
        located.append({**violation.as_dict(), "line": line, "column": column})
    return located


def locate(text: str, wanted: set[str]) -> dict[str, int]:
    """Map the wanted JSON pointers to the offsets of their values."""
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
            if pointer in wanted:
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
        key = (self.key or "").replace("~", "~0").replace("/", "~1")
        return f"{self.prefix}/{key}"


def _with_parents(pointers: Iterable[str]) -> set[str]:
    wanted = {""}
    for pointer in pointers:
        while pointer not in wanted:
            wanted.add(pointer)
            pointer = pointer.rpartition("/")[0]
    return wanted


def _nearest(offsets: dict[str, int], pointer: str) -> int:
    while pointer and pointer not in offsets:
        pointer = pointer.rpartition("/")[0]
    return offsets.get(pointer, 0)
