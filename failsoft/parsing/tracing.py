"""Where keys and values of a recovered value stand in the text it was read from."""

from collections.abc import Callable, Sequence
from typing import Any

from failsoft.json_values import pointer_parts


class Trace:
    """The offsets of every container, key and value; lives as long as the value it describes."""

    def __init__(self) -> None:
        """Begin with nothing remembered."""
        self.root: Any = None
        self._starts: dict[int, int] = {}
        self._places: dict[int, dict[Any, tuple[int, int]]] = {}
        self._moves: list[Callable[[int], int]] = []

    def remember(self, container: object, at: int, places: dict[Any, tuple[int, int]]) -> None:
        """Remember where a container begins, and for each key or index (key, value) offsets."""
        self._starts[id(container)] = at
        self._places[id(container)] = places

    def move(self, moved: Callable[[int], int]) -> None:
        """Map every offset once more: the text stood inside another one."""
        self._moves.append(moved)

    def pointed(self, pointer: str, *, key: bool = False) -> int:
        """Offset of the value, or the key, at a JSON pointer; of the nearest one around it."""
        path: list[Any] = []
        here = self.root
        for name in pointer_parts(pointer):
            segment = int(name) if isinstance(here, list) and name.isdecimal() else name
            path.append(segment)
            inside = isinstance(here, dict | list) and segment in self._places.get(id(here), {})
            here = here[segment] if inside else None
        return self._find(path, part=0 if key else 1)

    def last_before(self, offset: int) -> int:
        """Offset of the key or value of the root that `offset` is part of."""
        starts = {0: self._starts.get(id(self.root), 0)}
        starts |= {start: start for places in self._places.values() for pair in places.values()
                   for start in pair}  # fmt: skip
        return max(item for item in map(self._outside, starts.values()) if item <= offset)

    def _outside(self, offset: int) -> int:
        for moved in self._moves:
            offset = moved(offset)
        return offset

    def _find(self, path: Sequence[Any], part: int) -> int:
        here = self.root
        offset = self._starts.get(id(here), 0)
        for number, segment in enumerate(path):
            places = self._places.get(id(here), {})
            if segment not in places:
                break
            offset = places[segment][part if number == len(path) - 1 else 1]
            here = here[segment]
        return self._outside(offset)


MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
# What is left to search: brackets of either kind as one, digits, exponent marks, and commas
# between numbers. Text may then look like a huge number; the numbers themselves decide.
_KEPT = b"[]{},0123456789eE"
_CLASSES = bytes.maketrans(_KEPT, b"[][],0000000000ee")
_SILENT = bytes(byte for byte in range(256) if byte not in _KEPT)
_NOT_BRACKETS = b",0e"
# Only such digits can go past what a float holds: a long exponent, or many digits and a short one.
_LONG_EXPONENT = b"0e000"
_MANY_DIGITS = b"0" * 200


def is_within(encoded: bytes, value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether a text of at most 1 MiB holds a value of 64 levels and finite numbers only."""
    if len(encoded) > MAX_BYTES:
        return False
    classes = encoded.translate(_CLASSES, _SILENT)
    if (_LONG_EXPONENT in classes or _MANY_DIGITS in classes) and not _is_finite(value):
        return False
    if classes.count(b"[") <= MAX_DEPTH:
        return True
    return _closes_within(classes) or _is_shallow(value)


def _closes_within(classes: bytes) -> bool:
    """Whether taking out empty pairs 64 times leaves no bracket."""
    left = classes.translate(None, _NOT_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not left:
            return True
        left = left.replace(b"[]", b"")
    return not left


def _levels(value: Any) -> Any:  # noqa: ANN401 - any JSON
    level = [value]
    while level:
        yield level
        level = [
            item
            for container in level
            if isinstance(container, dict | list)
            for item in (container.values() if isinstance(container, dict) else container)
        ]


def _is_shallow(value: Any) -> bool:  # noqa: ANN401 - any JSON
    depth = 0
    for level in _levels(value):
        depth += any(isinstance(item, dict | list) for item in level)
    return depth <= MAX_DEPTH


def _is_finite(value: Any) -> bool:  # noqa: ANN401 - any JSON
    return not any(
        isinstance(item, float) and item in (float("inf"), float("-inf"))
        for level in _levels(value)
        for item in level
    )


def same(one: object, other: object) -> bool:
    """Compare two values read from JSON, of depth 64 at most."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other
