"""Bounds of a JSON value, checked in one walk without recursion.

Whatever a model wrote, later rules only ever see values of bounded depth and size.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from plans.core.contract import MAX_DEPTH, MAX_INTEGER_BITS, MAX_NODES, MAX_STRING_BYTES
from plans.core.violations import Violations, kind_of, point

# Characters of which no encoding exceeds the limit: one of them has at most four bytes.
_SURELY_SHORT = MAX_STRING_BYTES // 4
_Link = tuple["_Link | None", str | int]


@dataclass(slots=True)
class _Walk:
    found: Violations
    nodes: int = 0
    mentions_output: bool = False
    # Containers still to be visited: value, depth, and the way back to the root.
    pending: list[tuple[Any, int, _Link | None]] = field(default_factory=list)


def check_bounds(value: object, found: Violations) -> bool:
    """Check depth, size and JSON types; return whether a string looks like a reference.

    Linear in the number of nodes; stops at the first value too many.
    """
    walk = _Walk(found)
    _look_at(walk, value, 0, None)
    while walk.pending and not found.full:
        container, depth, link = walk.pending.pop()
        walk.nodes += len(container)
        if walk.nodes > MAX_NODES:
            found.add("", "too_many_values", f"expected at most {MAX_NODES} values")
            break
        if type(container) is dict:
            _enter_object(walk, container, depth, link)
        else:
            _enter_array(walk, container, depth, link)
    return walk.mentions_output


# Most values are short texts; whatever else may be wrong is looked at below.


def _enter_object(walk: _Walk, container: dict[Any, Any], depth: int, link: _Link | None) -> None:
    for key, item in container.items():
        if type(key) is not str or len(key) > _SURELY_SHORT:
            _check_key(walk, key, link)
        if type(item) is not str or len(item) > _SURELY_SHORT or item[:1] == "$":
            _look_at(walk, item, depth, (link, key))


def _enter_array(walk: _Walk, container: list[Any], depth: int, link: _Link | None) -> None:
    for index, item in enumerate(container):
        if type(item) is not str or len(item) > _SURELY_SHORT or item[:1] == "$":
            _look_at(walk, item, depth, (link, index))


def _look_at(walk: _Walk, item: Any, depth: int, link: _Link | None) -> None:  # noqa: ANN401 - JSON
    kind = type(item)
    if kind is dict or kind is list:
        if depth >= MAX_DEPTH:
            walk.found.add(_path(link), "too_deep", f"expected at most {MAX_DEPTH} levels")
        elif item:
            walk.pending.append((item, depth + 1, link))
    elif kind is str:
        walk.mentions_output |= item.startswith("$")
        if len(item) > _SURELY_SHORT:
            _check_string(walk, item, link)
    elif item is not None and kind is not bool:
        _check_scalar(walk, item, link)


def _check_string(walk: _Walk, text: str, link: _Link | None) -> None:
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_STRING_BYTES:
        walk.found.add(
            _path(link),
            "string_too_long",
            f"expected at most {MAX_STRING_BYTES} bytes of text, got {size}",
        )


def _check_key(walk: _Walk, key: object, link: _Link | None) -> None:
    if not isinstance(key, str):
        walk.found.add(_path(link), "key_type", f"expected keys to be strings, got {kind_of(key)}")
    else:
        _check_string(walk, key, link)


def _check_scalar(walk: _Walk, item: object, link: _Link | None) -> None:
    if isinstance(item, float):
        if not math.isfinite(item):
            walk.found.add(_path(link), "number_not_finite", "expected a finite number")
    elif isinstance(item, int):
        if item.bit_length() > MAX_INTEGER_BITS:
            walk.found.add(_path(link), "number_too_large", "expected a number of ordinary size")
    else:
        walk.found.add(_path(link), "not_json", f"expected a JSON value, got {kind_of(item)}")


def _path(link: _Link | None) -> str:
    parts: list[str | int] = []
    while link is not None:
        link, part = link
        parts.append(part)
    return point(*reversed(parts))
