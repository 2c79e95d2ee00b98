"""When two JSON values are the same: 1 is 1.0, true is not 1, the order of keys is nothing."""

import json
from typing import Any


def same(one: Any, other: Any) -> bool:  # noqa: ANN401 - any JSON
    """Compare two values as JSON Schema does."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            same(value, other[key]) for key, value in one.items()
        )
    return bool(one == other)


def are_unique(items: list[Any]) -> bool:
    """Say whether no two items are the same, in linear time."""
    return len({_canonical(item) for item in items}) == len(items)


def _canonical(value: Any) -> str:  # noqa: ANN401 - any JSON
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, float) and value.is_integer():
        return hex(int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        # As text: huge integers have no decimal form that is cheap to make.
        return hex(value)
    if isinstance(value, str):
        return f"={value}"
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
