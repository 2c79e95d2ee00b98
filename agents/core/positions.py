"""Where things stand in a JSON text: 1-based lines and columns in code points."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r'(?P<mark>[{}\[\],:])|(?P<string>"(?:[^"\\]|\\.)*")|(?P<scalar>[^\s{}\[\],:"]+)',
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The 1-based line and column of a character, or of the end when `offset` is past it."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def escape_pointer(key: str) -> str:
    """One segment of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def pointer_of(path: Iterator[object] | tuple[object, ...] | list[object]) -> str:
    """A JSON pointer from the segments of a pydantic `loc`."""
    return "".join(f"/{escape_pointer(str(segment))}" for segment in path)


@dataclass(slots=True)
class _Frame:
    prefix: str
    is_object: bool
    index: int = 0
    key: str | None = None
    seen: set[str] = field(default_factory=set)

    def pointer(self) -> str:
        return (
            f"{self.prefix}/{escape_pointer(self.key or '')}"
            if self.is_object
            else f"{self.prefix}/{self.index}"
        )


@dataclass(frozen=True, slots=True)
class Located:
    """Offsets by JSON pointer, and the first repeated key when there is one."""

    offsets: dict[str, int]
    repeated_key: int | None

    def offset_of(self, pointer: str) -> int:
        """The offset of a value, or of the nearest enclosing one when it is missing."""
        while pointer and pointer not in self.offsets:
            pointer = pointer.rpartition("/")[0]
        return self.offsets.get(pointer, 0)


def locate(text: str, start: int = 0) -> Located:
    """Map each JSON pointer of the document at `start` to its value's offset; linear."""
    offsets: dict[str, int] = {}
    frames: list[_Frame] = []
    repeated_key: int | None = None
    for token in _TOKEN.finditer(text, start):
        kind, at = token.lastgroup, token.start()
        mark = token.group() if kind == "mark" else ""
        frame = frames[-1] if frames else None
        if (
            kind == "string"
            and frame is not None
            and frame.is_object
            and frame.key is None
        ):
            frame.key = _unescape(token.group()[1:-1])
            if frame.key in frame.seen and repeated_key is None:
                repeated_key = at
            frame.seen.add(frame.key)
        elif mark == "," and frame is not None:
            frame.index, frame.key = frame.index + 1, None
        elif mark in ("}", "]"):
            del frames[-1:]
            if not frames:
                break
        elif mark != ":" and mark != ",":
            pointer = frame.pointer() if frame is not None else ""
            offsets.setdefault(pointer, at)
            if mark:
                frames.append(_Frame(pointer, mark == "{"))
            elif frame is None:
                break
    return Located(offsets, repeated_key)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_expand, text) if "\\" in text else text


def _expand(match: re.Match[str]) -> str:
    digits, short = match.groups()
    return chr(int(digits, 16)) if digits else _SHORT_ESCAPES.get(short, short)
