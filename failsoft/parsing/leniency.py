"""Leniency towards types for any pydantic model, driven by the errors of strict validation.

1. Validate strictly. 2. Replace each value whose error has exactly one lenient reading.
3. Repeat until nothing changes. Every leniency is recorded.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from failsoft.json_values import pointer_of
from failsoft.parsing import Recovered, recover

MAX_ROUNDS = 8
UNKNOWN_KEY = "unknown_key_dropped"
_EXPECTED = re.compile(r"'([^']*)'")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_ID_KEY = re.compile(r"(?:.*_)?ids?")
_OPENS_DOCUMENT = frozenset('{["')
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Softened:
    """One leniency: its kind, and a JSON pointer into the original document."""

    path: str
    kind: str


def drops_all(_key: str, _value: object) -> bool:
    """Drop every unknown key."""
    return True


def soften(
    value: Any,  # noqa: ANN401 - any JSON
    adapter: TypeAdapter[Any],
    may_drop: Callable[[str, object], bool] = drops_all,
) -> tuple[Any, list[Softened]]:
    """Return a copy of `value` softened to fit the model, and the leniencies.

    `may_drop` decides for an unknown key and its value whether they are dropped.
    """
    softened = deepcopy(value)
    leniencies: list[tuple[list[Any], str]] = []
    for _ in range(MAX_ROUNDS):
        new_leniencies = [
            item
            for error in _errors(softened, adapter)
            if (item := _soften_one(softened, error, adapter, may_drop))
        ]
        leniencies += new_leniencies
        if not new_leniencies:
            break
    # Leave out leniencies whose surroundings were dropped later.
    return softened, [
        Softened(pointer_of(path), kind)
        for path, kind in leniencies
        if kind == UNKNOWN_KEY or _holder(softened, path) is not _MISSING
    ]


def read_integer(value: object) -> int | None:
    """Return a numeric string or an integral float as an integer, else None."""
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return None


def read_document(value: object) -> Recovered | None:
    """Return the object or array in a JSON string; None if reading it loses any of the text."""
    if not isinstance(value, str) or value.lstrip()[:1] not in _OPENS_DOCUMENT:
        return None
    outcome = recover(value)
    if not isinstance(outcome, Recovered) or not all(item.lossless for item in outcome.repairs):
        return None
    return outcome


def is_plain_integer(value: object) -> bool:
    """Whether a value is an integer; a boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def _errors(value: object, adapter: TypeAdapter[Any]) -> list[Any]:
    try:
        # As JSON: strict validation then accepts strings as enumerations and dates.
        adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        return list(error.errors(include_url=False, include_input=False))
    return []


def _soften_one(
    softened: Any,  # noqa: ANN401 - any JSON
    error: Any,  # noqa: ANN401 - of pydantic
    adapter: TypeAdapter[Any],
    may_drop: Callable[[str, object], bool],
) -> tuple[list[Any], str] | None:
    """Soften the value at an error in place; return its path and the kind of the leniency."""
    path = _path_in(softened, error["loc"])
    kind = error["type"]
    if kind == "union_tag_invalid":
        path = [*path, error["ctx"]["discriminator"].strip("'")]
    if not path:
        return None
    holder, key = _holder(softened, path[:-1]), path[-1]
    value = _get(holder, key)
    if value is _MISSING:
        return None
    if kind == "extra_forbidden":
        if not may_drop(key, value):
            return None
        del holder[key]
        return path, UNKNOWN_KEY
    reading = _read(kind, value, error, path)
    if reading is None or (value is None and not _has_default(softened, path, adapter)):
        return None
    holder[key], name = reading
    return path, name


def _has_default(softened: object, path: list[Any], adapter: TypeAdapter[Any]) -> bool:
    without = deepcopy(softened)
    holder = _holder(without, path[:-1])
    if not isinstance(holder, dict):
        return False
    del holder[path[-1]]
    return all(
        error["type"] != "missing" or error["loc"][-1] != path[-1]
        for error in _errors(without, adapter)
    )


def _read(
    kind: str, value: object, error: Mapping[str, Any], path: Sequence[Any]
) -> tuple[Any, str] | None:
    """Return the only lenient reading of a value and the name of the leniency, if any."""
    if kind in ("literal_error", "enum", "union_tag_invalid") and isinstance(value, str):
        expected = error["ctx"].get("expected") or error["ctx"].get("expected_tags", "")
        matches = [name for name in _EXPECTED.findall(expected) if name.lower() == value.lower()]
        return (matches[0], "letter_case") if len(matches) == 1 and matches[0] != value else None
    if kind == "list_type":
        if value is None:
            return [], "null_for_list"
        if isinstance(value, str | int | float):
            return [value], "scalar_for_list"
        return None
    if kind in ("dict_type", "model_type", "model_attributes_type", "dataclass_type"):
        document = read_document(value)
        if document is None or document.repairs or not isinstance(document.value, dict):
            return None
        return document.value, "json_string"
    if kind in ("int_type", "int_from_float"):
        number = read_integer(value)
        name = "numeric_string" if isinstance(value, str) else "integral_float"
        return None if number is None else (number, name)
    if kind == "string_type" and is_plain_integer(value) and _is_id(path):
        return str(value), "integer_id"
    return None


def _is_id(path: Sequence[Any]) -> bool:
    names = [part for part in path if isinstance(part, str)]
    return bool(names) and _ID_KEY.fullmatch(names[-1]) is not None


def _path_in(value: object, location: Sequence[Any]) -> list[Any]:
    """Return the parts of a `loc` that are keys of the document, without names of variants."""
    path: list[Any] = []
    current = value
    for number, part in enumerate(location):
        inner = _get(current, part)
        if inner is _MISSING and number < len(location) - 1:
            continue
        path.append(part)
        current = inner
    return path if _get(_holder(value, path[:-1]), path[-1] if path else "") is not _MISSING else []


def _holder(value: Any, path: Sequence[Any]) -> Any:  # noqa: ANN401 - any JSON
    for part in path:
        value = _get(value, part)
    return value


def _get(holder: Any, key: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(holder, dict) and key in holder:
        return holder[key]
    if isinstance(holder, list) and is_plain_integer(key) and key < len(holder):
        return holder[key]
    return _MISSING
