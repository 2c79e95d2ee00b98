"""Tool outputs made safe: JSON only, bounded, and truncated for display."""

import json
import math
from typing import Any

from pydantic import JsonValue

from failsoft.json_values import clean_text
from failsoft.plans.contract import (
    MAX_DEPTH,
    MAX_INTEGER_BITS,
    MAX_NODES,
    MAX_OUTPUT_BYTES,
    MAX_SHOWN_OUTPUT_BYTES,
)
from failsoft.plans.violations import kind_of

_PREVIEW_CHARACTERS = 2_000
_to_text = json.JSONEncoder(ensure_ascii=False).encode


class UnusableOutputError(Exception):
    """A tool returned something that is not JSON, or too much of it."""


def make_json(value: object) -> JsonValue:
    """Return a copy of the value that any JSON writer and PostgreSQL can store.

    Tuples become arrays, unstorable characters U+FFFD. Raises UnusableOutputError for
    other types, numbers that are not finite, and values beyond 1 MiB, 200,000 values or
    64 levels.
    """
    return _Copy().copy(value, 0)


class _Copy:
    def __init__(self) -> None:
        self._nodes = 0
        self._size = 0

    def copy(self, value: Any, depth: int) -> JsonValue:  # noqa: ANN401 - any tool's answer
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise UnusableOutputError(f"expected at most {MAX_DEPTH} levels")
        if self._nodes > MAX_NODES:
            raise UnusableOutputError(f"expected at most {MAX_NODES} values")
        if isinstance(value, str):
            return self._copy_text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, dict):
            return {self._copy_key(key): self.copy(item, depth + 1) for key, item in value.items()}
        if isinstance(value, int | float):
            return self._copy_number(value)
        if isinstance(value, list | tuple):
            return [self.copy(item, depth + 1) for item in value]
        raise UnusableOutputError(f"expected JSON, got {kind_of(value)}")

    def _copy_text(self, text: str) -> str:
        self._size += len(text)
        if self._size > MAX_OUTPUT_BYTES:
            raise UnusableOutputError(f"expected at most {MAX_OUTPUT_BYTES} characters of text")
        return clean_text(text)

    def _copy_key(self, key: object) -> str:
        if not isinstance(key, str):
            raise UnusableOutputError(f"expected keys to be strings, got {kind_of(key)}")
        return self._copy_text(key)

    def _copy_number(self, value: int | float) -> int | float:
        if isinstance(value, int):
            if value.bit_length() > MAX_INTEGER_BITS:
                raise UnusableOutputError("expected a number of ordinary size")
            return int(value)
        if not math.isfinite(value):
            raise UnusableOutputError("expected a finite number")
        return float(value)


def fit_output(value: JsonValue) -> JsonValue:
    """Return the value, or a preview object when it is too long for display."""
    text = _to_text(value)
    size = len(text.encode())
    if size <= MAX_SHOWN_OUTPUT_BYTES:
        return value
    return {"truncated": True, "bytes": size, "preview": text[:_PREVIEW_CHARACTERS]}
