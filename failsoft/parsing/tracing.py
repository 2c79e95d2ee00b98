"""The offsets of keys and values of a recovered value in its text."""

from collections.abc import Callable
from typing import Any

import jiter

from failsoft.json_values import pointer_parts


class Trace:
    """The offsets of all containers, keys and values; valid as long as the value is alive."""

    def __init__(self) -> None:
        self.root: Any = None
        self._starts: dict[int, int] = {}
        self._places: dict[int, dict[Any, tuple[int, int]]] = {}
        self._moves: list[Callable[[int], int]] = []

    def remember(self, container: object, at: int, places: dict[Any, tuple[int, int]]) -> None:
        """Store the offset of a container and the (key, value) offsets of its items."""
        self._starts[id(container)] = at
        self._places[id(container)] = places

    def move(self, mapping: Callable[[int], int]) -> None:
        """Add a mapping of all offsets to those of an enclosing text."""
        self._moves.append(mapping)

    def pointed(self, pointer: str, *, key: bool = False) -> int:
        """Return the offset of the value or key at a JSON pointer, or of the nearest parent."""
        current, names = self.root, pointer_parts(pointer)
        offset = self._starts.get(id(current), 0)
        for number, name in enumerate(names, start=1):
            segment = int(name) if isinstance(current, list) and name.isdecimal() else name
            places = self._places.get(id(current), {})
            if segment not in places:
                break
            key_at, value_at = places[segment]
            offset = key_at if key and number == len(names) else value_at
            current = current[segment]
        return self._outside(offset)

    def last_before(self, offset: int) -> int:
        """Return the start of the key or value that contains `offset`."""
        starts = {0: self._starts.get(id(self.root), 0)}
        starts |= {start: start for places in self._places.values() for pair in places.values()
                   for start in pair}  # fmt: skip
        return max(item for item in map(self._outside, starts.values()) if item <= offset)

    def _outside(self, offset: int) -> int:
        for mapping in self._moves:
            offset = mapping(offset)
        return offset


MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
# Bytes to search: brackets of both kinds as one, digits, exponents, and commas between
# numbers. Strings may look like huge numbers; then the numbers of the value decide.
_KEPT = b"[]{},0123456789eE"
_CLASSES = bytes.maketrans(_KEPT, b"[][],0000000000ee")
_SILENT = bytes(byte for byte in range(256) if byte not in _KEPT)
_NOT_BRACKETS = b",0e"
# Only these digits may exceed a float: a long exponent, or many digits with a short one.
_LONG_EXPONENT = b"0e000"
_MANY_DIGITS = b"0" * 200


def read_valid(text: str) -> tuple[bool, Any]:
    """Return whether a text is valid JSON within the bounds, and its value."""
    try:
        encoded = text.encode()
        value = jiter.from_json(
            encoded, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys"
        )
    except ValueError:
        return False, None
    return is_within(encoded, value), value


def is_within(encoded: bytes, value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether a text has at most 1 MiB and its value 64 levels and finite numbers."""
    if len(encoded) > MAX_BYTES:
        return False
    classes = encoded.translate(_CLASSES, _SILENT)
    if (_LONG_EXPONENT in classes or _MANY_DIGITS in classes) and not _is_finite(value):
        return False
    if classes.count(b"[") <= MAX_DEPTH:
        return True
    return _closes_within(classes) or _is_shallow(value)


def _closes_within(classes: bytes) -> bool:
    """Whether removing empty pairs 64 times leaves no bracket."""
    brackets = classes.translate(None, _NOT_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return True
        brackets = brackets.replace(b"[]", b"")
    return not brackets


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


def same(value: object, other: object) -> bool:
    """Whether two JSON values of at most 64 levels are equal, types included."""
    if type(value) is not type(other):
        return False
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(same(value[key], other[key]) for key in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(same, value, other))
    return value == other
