"""Bounds of stored JSON: storable text, size, depth and range of numbers."""

import re
from collections.abc import Iterable
from math import isfinite
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
REPLACEMENT = "\ufffd"
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
MAX_NODES = 1_000
MAX_DEPTH = 32
MAX_KEY_CHARACTERS = 200
MAX_INTEGER = 2**53
# One escaped character at a time, so that `\\ud800` (a backslash, then text) stays.
ESCAPED = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


class BoundError(Exception):
    """A value exceeds a bound: a JSON pointer, a code and a message."""

    def __init__(self, path: str, code: str, message: str) -> None:
        super().__init__(message)
        self.path, self.code, self.message = path, code, message


def clean_text(text: str) -> str:
    """Replace NUL and lone surrogates, which PostgreSQL cannot store, by U+FFFD."""
    text = str.__str__(text)  # of an enumeration its value, not its name
    if text.isascii() and "\0" not in text:
        return text
    return UNSTORABLE.sub(REPLACEMENT, text)


def mend_utf_8(body: bytes) -> bytes:
    """Replace bytes that are not UTF-8 by U+FFFD."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode("utf-8", "replace").encode()
    return body


def mend_surrogates(body: bytes) -> bytes:
    """Replace escaped lone surrogates in JSON text, which strict parsers refuse."""
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return ESCAPED.sub(lambda match: rb"\ufffd" if match[1] else match[0], body)


def clean_json(
    value: JSON, max_nodes: int = MAX_NODES, max_depth: int = MAX_DEPTH
) -> tuple[JSON, BoundError | None]:
    """Return a storable copy of a JSON value, or the first bound that it exceeds.

    Integers within 2^53, keys of at most 200 characters, at most `max_nodes` values,
    `max_depth` levels.
    """
    walk = _CleaningWalk(max_nodes, max_depth)
    try:
        return walk.copy(value, "", 1), None
    except BoundError as broken:
        return None, broken


class _CleaningWalk:
    def __init__(self, max_nodes: int, max_depth: int) -> None:
        self.remaining = self.max_nodes = max_nodes
        self.max_depth = max_depth

    def copy(self, value: JSON, path: str, depth: int) -> JSON:
        self.remaining -= 1
        if self.remaining < 0:
            raise BoundError(path, "too_many_nodes", f"more than {self.max_nodes} values")
        if isinstance(value, str):
            return clean_text(value)
        if isinstance(value, list | dict):
            return self._copy_inside(value, path, depth)
        if isinstance(value, int) and abs(value) > MAX_INTEGER:
            raise BoundError(path, "integer_range", "integers within 2^53")
        if isinstance(value, float) and not isfinite(value):
            raise BoundError(path, "finite_number", "numbers must be finite")
        return value

    def _copy_inside(self, value: list[JSON] | dict[str, JSON], path: str, depth: int) -> JSON:
        if depth > self.max_depth:
            raise BoundError(path, "too_deep", f"more than {self.max_depth} levels")
        if isinstance(value, list):
            return [
                self.copy(item, f"{path}/{index}", depth + 1) for index, item in enumerate(value)
            ]
        return {
            self._copy_key(key, path): self.copy(item, f"{path}/{_segment(key)}", depth + 1)
            for key, item in value.items()
        }

    def _copy_key(self, key: str, path: str) -> str:
        if len(key) > MAX_KEY_CHARACTERS:
            raise BoundError(
                path, "key_too_long", f"keys of at most {MAX_KEY_CHARACTERS} characters"
            )
        return clean_text(key)


def _segment(key: str) -> str:
    return escape_pointer(key[:MAX_KEY_CHARACTERS])


def escape_pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def pointer_of(path: Iterable[object]) -> str:
    """Return the JSON pointer of a pydantic `loc`."""
    return "".join(f"/{escape_pointer(str(segment))}" for segment in path)


def pointer_parts(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
