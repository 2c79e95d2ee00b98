"""Typed reading of attributes, whose values may be anything."""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import jiter

from diagnostics.ingest.otlp.convention_table import READ
from failsoft.events import MAX_INTEGER
from failsoft.json_values import clean_text, mend_surrogates

PREFIXES = (
    "failsoft.",
    # Only the first answer: `...0.message.content`, `...0.finish_reason`.
    "llm.output_messages.0.",
    "gen_ai.completion.0.",
    # Names and schemas of the tools in a request.
    "llm.tools.",
    "llm.request.functions.",
    "gen_ai.request.functions.",
)


def is_known(key: str) -> bool:
    return key in READ or key.startswith(PREFIXES)


MAX_SHORT = 200
MAX_JSON = 1 << 20
INTEGER = re.compile(r"[0-9]{1,10}")
NO_SLUG = re.compile(r"[^a-z0-9_-]+")
BEFORE_SLUG = re.compile(r"^[^a-z]+")
AttributeMap = Mapping[str, Any]


def short(attributes: AttributeMap, *keys: str) -> str | None:
    """Return the first of these that is a non-blank text, cut to 200 characters."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value.strip():
            return clean_text(value.strip())[:MAX_SHORT]
    return None


def short_or_number(attributes: AttributeMap, *keys: str) -> str | None:
    """Return the first of these that is a text or a whole number, as a text."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)[:MAX_SHORT]
        if (text := short(attributes, key)) is not None:
            return text
    return None


def count(attributes: AttributeMap, *keys: str) -> int | None:
    """Return the first of these that is a number from 0; resources have theirs as text."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and INTEGER.fullmatch(value):
            value = int(value)
        if isinstance(value, float) and isfinite(value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return min(value, MAX_INTEGER)
    return None


def temperature(attributes: AttributeMap, *keys: str) -> float | None:
    """Return the first of these that can be a temperature."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value) if 0 <= value <= 100 else None
    return None


def slug(text: str | None) -> str | None:
    """Return a text as a node name: lower case, `_` for invalid characters."""
    if text is None:
        return None
    name = BEFORE_SLUG.sub("", NO_SLUG.sub("_", text.lower())).strip("_-")[:63]
    return name or None


def decoded(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Return a structured value; JSON text is read, None when it cannot be."""
    if not isinstance(value, str):
        return value
    try:
        return jiter.from_json(mend_surrogates(value[: MAX_JSON + 1].encode(errors="replace")))
    except ValueError:
        return None
