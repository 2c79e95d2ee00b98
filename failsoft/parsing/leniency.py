"""Leniency towards types for any pydantic model, led by the errors of strict validation.

1. Validate strictly. 2. Where an error is of a kind that has one lenient reading, take that
reading. 3. Again, until nothing more can be done. What was taken is always told.
"""

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from failsoft.json_values import pointer_of, pointer_parts
from failsoft.parsing import Recovered, recover

MAX_ROUNDS = 8
UNKNOWN_KEY = "unknown_key_dropped"
_EXPECTED = re.compile(r"'([^']*)'")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_ID_KEY = re.compile(r"(?:.*_)?ids?")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Softened:
    """One leniency: where (a JSON pointer into what the model wrote) and of which kind."""

    path: str
    kind: str


def soften(value: Any, adapter: TypeAdapter[Any]) -> tuple[Any, list[Softened]]:  # noqa: ANN401 - any JSON
    """Return a copy of `value` made to fit the model, and every leniency taken."""
    soft = deepcopy(value)
    done: list[Softened] = []
    for _ in range(MAX_ROUNDS):
        taken = [
            item for error in _errors(soft, adapter) if (item := _soften_one(soft, error, adapter))
        ]
        done += taken
        if not taken:
            break
    # A leniency no longer shows when something around it was dropped later.
    return soft, [
        item for item in done if item.kind == UNKNOWN_KEY or _at(soft, item.path) is not _MISSING
    ]


def read_integer(value: object) -> int | None:
    """Read a numeric string or an integral float as an integer; a boolean is none."""
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return None


def read_object(value: object) -> dict[str, Any] | None:
    """Read an object given as a JSON string; one that needs repairs stays a string."""
    if not isinstance(value, str):
        return None
    found = recover(value)
    if not isinstance(found, Recovered) or found.repairs or not isinstance(found.value, dict):
        return None
    return found.value


def is_plain_integer(value: object) -> bool:
    """Whether a value is an integer; a boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def _errors(value: object, adapter: TypeAdapter[Any]) -> list[Any]:
    try:
        # As JSON, so that strictness lets strings be enumerations and dates.
        adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        return list(error.errors(include_url=False, include_input=False))
    return []


def _soften_one(soft: Any, error: Any, adapter: TypeAdapter[Any]) -> Softened | None:  # noqa: ANN401 - any JSON
    path = _path_in(soft, error["loc"])
    kind = error["type"]
    if kind == "union_tag_invalid":
        path = [*path, error["ctx"]["discriminator"].strip("'")]
    if not path:
        return None
    holder, key = _holder(soft, path[:-1]), path[-1]
    given = _get(holder, key)
    if given is _MISSING:
        return None
    if kind == "extra_forbidden":
        del holder[key]
        return Softened(pointer_of(path), UNKNOWN_KEY)
    reading = _read(kind, given, error, path)
    if reading is None or (given is None and not _has_default(soft, path, adapter)):
        return None
    holder[key], name = reading
    return Softened(pointer_of(path), name)


def _has_default(soft: object, path: list[Any], adapter: TypeAdapter[Any]) -> bool:
    """Whether a value may be left out."""
    without = deepcopy(soft)
    holder = _holder(without, path[:-1])
    if not isinstance(holder, dict):
        return False
    del holder[path[-1]]
    return all(
        error["type"] != "missing" or error["loc"][-1] != path[-1]
        for error in _errors(without, adapter)
    )


def _read(
    kind: str, given: object, error: Mapping[str, Any], path: Sequence[Any]
) -> tuple[Any, str] | None:
    """Find the one lenient reading of a value, and the name of the leniency."""
    if kind in ("literal_error", "enum", "union_tag_invalid") and isinstance(given, str):
        expected = error["ctx"].get("expected") or error["ctx"].get("expected_tags", "")
        same = [name for name in _EXPECTED.findall(expected) if name.lower() == given.lower()]
        return (same[0], "letter_case") if len(same) == 1 and same[0] != given else None
    if kind == "list_type":
        return _read_list(given)
    if kind in ("dict_type", "model_type", "model_attributes_type", "dataclass_type"):
        found = read_object(given)
        return None if found is None else (found, "json_string")
    if kind in ("int_type", "int_from_float"):
        number = read_integer(given)
        name = "numeric_string" if isinstance(given, str) else "integral_float"
        return None if number is None else (number, name)
    if kind == "string_type" and is_plain_integer(given) and _is_id(path):
        return str(given), "integer_id"
    return None


def _read_list(given: object) -> tuple[list[Any], str] | None:
    if given is None:
        return [], "null_for_list"
    if isinstance(given, str | int | float):
        return [given], "scalar_for_list"
    return None


def _is_id(path: Sequence[Any]) -> bool:
    names = [part for part in path if isinstance(part, str)]
    return bool(names) and _ID_KEY.fullmatch(names[-1]) is not None


def _path_in(value: object, location: Sequence[Any]) -> list[Any]:
    """Keep the parts of a `loc` that are keys of the document, not names of a union's members."""
    path: list[Any] = []
    here = value
    for number, part in enumerate(location):
        inner = _get(here, part)
        if inner is _MISSING and number < len(location) - 1:
            continue
        path.append(part)
        here = inner
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


def _at(value: Any, pointer: str) -> Any:  # noqa: ANN401 - any JSON
    for key in pointer_parts(pointer):
        value = _get(value, int(key) if isinstance(value, list) and key.isdigit() else key)
    return value
