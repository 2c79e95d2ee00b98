"""Bounds of an answer that the fast path must hold without looking at every value."""

from typing import Any

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
