"""Attributes: where each convention has the facts of a model call (`conventions.toml`), and their
typed reading, since values may be anything."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import jiter

from failsoft.events import MAX_INTEGER
from failsoft.json_values import clean_text, mend_surrogates

TABLE: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("conventions.toml").read_text(encoding="utf-8")
)
NOT_FIELDS = frozenset({"name", "marks", "scopes"})
PREFIXES = (
    "failsoft.",
    # Only the first answer: `...0.message.content`, `...0.finish_reason`.
    "llm.output_messages.0.",
    "gen_ai.output.messages.0.",
    "gen_ai.completion.0.",
    # AgentOps tells blocks of one answer as several: after thoughts this is the text.
    "gen_ai.completion.1.content",
    # Names and schemas of the tools in a request.
    "llm.tools.",
    "llm.request.functions.",
    "gen_ai.request.functions.",
)


class Key(NamedTuple):
    attribute: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Convention:
    """The keys of one convention, by field of a call."""

    name: str
    marks: tuple[str, ...]
    scopes: tuple[str, ...]
    keys: Mapping[str, tuple[Key, ...]]

    def is_used(self, attributes: Sequence[str], scope: str) -> bool:
        """Whether a span may have facts of this convention."""
        return (
            not self.marks
            or (bool(self.scopes) and scope.startswith(self.scopes))
            or (bool(attributes) and any(key.startswith(self.marks) for key in attributes))
        )


def _key(text: str) -> Key:
    attribute, _, path = text.partition(" > ")
    return Key(attribute, tuple(path.split("."))) if path else Key(attribute)


CONVENTIONS = tuple(
    Convention(
        row["name"],
        tuple(row.get("marks", ())),
        tuple(row.get("scopes", ())),
        {field: tuple(map(_key, keys)) for field, keys in row.items() if field not in NOT_FIELDS},
    )
    for row in TABLE["conventions"]
)
MARKS = tuple(mark for row in CONVENTIONS for mark in row.marks)
OPERATIONS: Mapping[str, list[str]] = TABLE["operations"]
SIGNS = tuple(map(_key, OPERATIONS["signs"]))
MODELS = ("model", "served_model", "named_model")
# A bare `model` may be that of anything.
MODEL_KEYS = tuple(
    dict.fromkeys(
        key
        for field in MODELS
        for row in CONVENTIONS
        for key in row.keys.get(field, ())
        if not key.attribute.isidentifier()
    )
)
READ = frozenset(
    {key.attribute for row in CONVENTIONS for keys in row.keys.values() for key in keys}
    | {*MARKS, *OPERATIONS["keys"], *(key.attribute for key in SIGNS)}
    | {key for keys in TABLE["read"].values() for key in keys}
)
"""The attributes that are read; all others are dropped."""


def is_known(key: str) -> bool:
    return key in READ or key.startswith(PREFIXES)


# The prefix of what Langfuse's SDK writes for a generation, and its level of a failed one.
OBSERVATION = "langfuse.observation."
ERROR_LEVEL = "ERROR"
# `failsoft.*`: what the conventions lack, reported by the agent itself. On a span, a log record or,
# for all of them, on the resource.
OWN_PREFIX = "failsoft."
_NAMES = (
    "correlation_id node provider model served_model upstream system_fingerprint prompt_version"
    " schema schema_version environment source release region credential output_mode"
    " finish_reason parse_error_type reason status tool"
)
OWN_TEXTS = tuple(_NAMES.split())
OWN_NUMBERS = ("cycle", "attempt", "attempts")
OWN_KIND = "failsoft.kind"
OWN_VERDICT = "failsoft.verdict"
OWN_ERRORS = "failsoft.validation_errors"
OWN_KNOWN = frozenset(
    OWN_PREFIX + name for name in (*OWN_TEXTS, *OWN_NUMBERS, "kind", "verdict", "validation_errors")
)
MAX_SHORT = 200
MAX_JSON = 1 << 20
INTEGER = re.compile(r"[0-9]{1,10}")
NO_SLUG = re.compile(r"[^a-z0-9_-]+")
BEFORE_SLUG = re.compile(r"^[^a-z]+")
AttributeMap = Mapping[str, Any]


def text_of(value: object) -> str | None:
    """Return a non-blank text, cut to 200 characters; None for anything else."""
    text = value.strip() if isinstance(value, str) else ""
    return clean_text(text)[:MAX_SHORT] if text else None


def short(attributes: AttributeMap, *keys: str) -> str | None:
    """Return the first of these that is a text."""
    for key in keys:
        if (text := text_of(attributes.get(key))) is not None:
            return text
    return None


def host(attributes: AttributeMap, key: str) -> str | None:
    """Return the name of the called server, also out of a URL.

    An IP address is none: it varies within a pool.
    """
    server = short(attributes, key)
    if server is None or _is_ip(server):
        return None
    try:
        host = urlsplit(server if "//" in server else f"//{server}").hostname
    except ValueError:
        return None
    return None if _is_ip(host or "") else host


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def text_or_number_of(value: object) -> str | None:
    """Return a text or a whole number as a text."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value)[:MAX_SHORT] if is_number else text_of(value)


def count_of(value: object) -> int | None:
    """Return a number from 0; resources have theirs as text."""
    if isinstance(value, str) and INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and isfinite(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return min(value, MAX_INTEGER)
    return None


def count(attributes: AttributeMap, *keys: str) -> int | None:
    """Return the first of these that is a number from 0."""
    counts = (count_of(attributes.get(key)) for key in keys)
    return next((number for number in counts if number is not None), None)


def temperature_of(value: object) -> float | None:
    """Return what can be a temperature; Spring writes its values as text."""
    number = decoded(value)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return float(number) if is_number and 0 <= number <= 100 else None


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


def read_own_fields(attributes: AttributeMap, resource: AttributeMap) -> dict[str, Any]:
    """Return the event fields of `failsoft.*`; those of the item override the resource's."""
    both: Mapping[str, Any] = {**_own_attributes(resource), **_own_attributes(attributes)}
    if not both:
        return {}
    fields: dict[str, Any] = {name: short(both, OWN_PREFIX + name) for name in OWN_TEXTS}
    fields |= {name: count(both, OWN_PREFIX + name) for name in OWN_NUMBERS}
    errors = decoded(both.get(OWN_ERRORS))
    fields["validation_errors"] = errors if isinstance(errors, list) else None
    return {name: value for name, value in fields.items() if value is not None}


def count_unknown(attributes: AttributeMap) -> int:
    return sum(key not in OWN_KNOWN for key in _own_attributes(attributes))


def _own_attributes(attributes: AttributeMap) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key.startswith(OWN_PREFIX)}
