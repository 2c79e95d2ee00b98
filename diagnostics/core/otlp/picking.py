"""Taking values out of attributes that may hold anything."""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import jiter

from diagnostics.core.cleaning import clean_text
from diagnostics.core.events import MAX_INTEGER

MAX_SHORT = 200
MAX_JSON = 1 << 20
INTEGER = re.compile(r"[0-9]{1,10}")
NO_SLUG = re.compile(r"[^a-z0-9_-]+")
BEFORE_SLUG = re.compile(r"^[^a-z]+")

Bag = Mapping[str, Any]


def short(bag: Bag, *keys: str) -> str | None:
    """Give the first of these that is a text with something in it, cut to 200 characters."""
    for key in keys:
        value = bag.get(key)
        if isinstance(value, str) and value.strip():
            return clean_text(value.strip())[:MAX_SHORT]
    return None


def count(bag: Bag, *keys: str) -> int | None:
    """Give the first of these that is a number from 0; resources have theirs as text."""
    for key in keys:
        value = bag.get(key)
        if isinstance(value, str) and INTEGER.fullmatch(value):
            value = int(value)
        if isinstance(value, float) and isfinite(value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return min(value, MAX_INTEGER)
    return None


def temperature(bag: Bag, *keys: str) -> float | None:
    """Give the first of these that can be a temperature."""
    for key in keys:
        value = bag.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value) if 0 <= value <= 100 else None
    return None


def slug(text: str | None) -> str | None:
    """Make a node's name of a text: lower case, `_` for what a name may not hold."""
    if text is None:
        return None
    made = BEFORE_SLUG.sub("", NO_SLUG.sub("_", text.lower())).strip("_-")[:63]
    return made or None


def decoded(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Give a structured value; one that was written as JSON text is read, None if it cannot be."""
    if not isinstance(value, str):
        return value
    try:
        return jiter.from_json(value[: MAX_JSON + 1].encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
