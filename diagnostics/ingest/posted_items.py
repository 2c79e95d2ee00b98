"""Posted items in the wire format: log shippers wrap them, add keys and rename keys.

1. An item that wraps another as JSON text (`message`, `log`) is opened; what is inside wins.
2. Without `occurred_at` its time is the first of `time`, `timestamp`, `@timestamp` and `date`.
3. Keys that no event has become attributes, bounded in number and size.
4. Without `event_id` the id is derived from the item: posted again, it is the same event.
"""

import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from itertools import islice

from pydantic import TypeAdapter, ValidationError

from diagnostics.rest.batches import BatchItem
from failsoft.answered import PostedAnswer, is_answered
from failsoft.events import MAX_ATTRIBUTES, PlausibleTime, PostedEvent
from failsoft.identifiers import EPOCH, uuid7
from failsoft.json_values import JSON, MAX_INTEGER, MAX_KEY_CHARACTERS, MAX_NODES, clean_text
from failsoft.parsing.strict import JsonTextError, parse_json
from failsoft.redaction import Redact

EVENT_FIELDS = frozenset(info.alias or name for name, info in PostedEvent.model_fields.items())
ANSWER_FIELDS = frozenset(info.alias or name for name, info in PostedAnswer.model_fields.items())
WRAPPINGS = ("message", "log")
TIME_KEYS = ("time", "timestamp", "@timestamp", "date")
# Logstash keeps the line that it read, and with it a copy of the answer.
DROPPED = frozenset({"event.original"})
ATTRIBUTE_BYTES = 1_024
# Enough is read that no secret is cut before it is recognised.
SEEN_CHARACTERS = 16_384
# Until 2200, times in seconds, milliseconds, microseconds and nanoseconds do not overlap.
LATEST_SECONDS = 7_258_118_400
UNITS = (1, 1_000, 1_000_000, 1_000_000_000)
TIME = TypeAdapter(PlausibleTime)
Item = dict[str, JSON]


@dataclass(frozen=True, slots=True)
class ShapedItem:
    """An item in the wire format, with the keys unknown to us and those dropped for room."""

    item: BatchItem
    has_own_id: bool = True
    unknown: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def is_in_shape(item: BatchItem) -> bool:
    """Whether an item is an event already: most are."""
    return (
        isinstance(item, dict)
        and item.keys() <= EVENT_FIELDS
        and item.get("event_id") is not None
        and "occurred_at" in item
        and not is_answered(item.get("name"))
    )


def shape_item(item: BatchItem, redact: Redact, id_key: bytes) -> ShapedItem:
    """Return an item in the wire format; `id_key` keys the derived ids."""
    if not isinstance(item, dict):
        return ShapedItem(item)
    opened = _unwrap(item)
    fields = ANSWER_FIELDS if is_answered(opened.get("name")) else EVENT_FIELDS
    shaped = {name: opened[name] for name in opened.keys() & fields}
    extra = {name: value for name, value in opened.items() if name not in fields}
    if (time := _take_time(shaped, extra)) is not None:
        shaped["occurred_at"] = time
    unknown = _Attributes(shaped.get("attributes"), redact)
    for name, value in extra.items():
        unknown.add(name, value)
    if unknown.kept is not None:
        shaped["attributes"] = unknown.kept
    has_own_id = shaped.get("event_id") is not None
    if not has_own_id:
        # A keyed hash, since a short secret in the item could be guessed.
        canonical = json.dumps(item, sort_keys=True, separators=(",", ":"))
        digest = hmac.digest(id_key, canonical.encode("utf-8", "surrogatepass"), "sha256")
        occurred_at = shaped.get("occurred_at")
        at = _moment(occurred_at) if isinstance(occurred_at, str) else None
        shaped["event_id"] = str(uuid7(at or EPOCH, digest))
    return ShapedItem(shaped, has_own_id, tuple(unknown.names), tuple(unknown.dropped))


def describe_unknown(shaped: Mapping[int, ShapedItem]) -> list[dict[str, str]]:
    """Return a warning for each unknown key."""
    dropped = {name for shaped_item in shaped.values() for name in shaped_item.dropped}
    names = dict.fromkeys(name for shaped_item in shaped.values() for name in shaped_item.unknown)
    return [_describe_field(name, name in dropped) for name in islice(names, MAX_ATTRIBUTES)]


def _describe_field(name: str, is_dropped: bool) -> dict[str, str]:
    shown = name[:MAX_KEY_CHARACTERS]
    matches = get_close_matches(shown, (EVENT_FIELDS | ANSWER_FIELDS) - {shown}, n=1, cutoff=0.8)
    message = "unknown field, taken as an attribute"
    if is_dropped:
        message = f"unknown field, dropped: an event has at most {MAX_ATTRIBUTES} attributes"
    path = "/" + shown.replace("~", "~0").replace("/", "~1")
    suggestions = "".join(f"; did you mean {other}?" for other in matches)
    return {"path": path, "code": "unknown_field", "message": message + suggestions}


def _unwrap(item: Item) -> Item:
    """Return the item that another one wraps as JSON text, merged; else the item."""
    if _is_named(item):
        return item
    for key in WRAPPINGS:
        inner = _parse_object(item.get(key))
        if inner is not None and _is_named(inner):
            return {**{name: value for name, value in item.items() if name != key}, **inner}
    return item


def _is_named(item: Item) -> bool:
    name = item.get("name")
    return is_answered(name) or (isinstance(name, str) and name.startswith("graph."))


def _parse_object(text: JSON) -> Item | None:
    # A million short keys in one text would become 85 MB.
    if not isinstance(text, str) or text.count('":') > MAX_NODES:
        return None
    try:
        value = parse_json(text.encode("utf-8", "surrogatepass"))
    except JsonTextError:
        return None
    return value if isinstance(value, dict) else None


def _take_time(shaped: Item, extra: Item) -> str | None:
    """Remove and return the time of an item without `occurred_at`; None if no key holds one."""
    if shaped.get("occurred_at") is not None:
        return None
    for key in TIME_KEYS:
        if (at := _moment(extra.get(key))) is not None:
            del extra[key]
            return at.isoformat()
    return None


def _moment(value: JSON) -> datetime | None:
    """Return a time: RFC 3339, or a number since 1970 whose unit follows from its size."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        unit = next((unit for unit in UNITS if abs(value) < LATEST_SECONDS * unit), None)
        if unit is None:
            return None
        value = (EPOCH + timedelta(microseconds=round(value * 1_000_000 / unit))).isoformat()
    try:
        return TIME.validate_python(value)
    except ValidationError:
        return None


class _Attributes:
    """The attributes of an item, with the values of its unknown keys while there is room."""

    def __init__(self, attributes: JSON, redact: Redact) -> None:
        self._redact = redact
        # The check refuses anything but an object, or an empty list.
        self.kept: Item | None = dict(attributes) if isinstance(attributes, dict) else {}
        if attributes and not isinstance(attributes, dict):
            self.kept = None
        self.names = list[str]()
        self.dropped = list[str]()

    def add(self, name: str, value: JSON) -> None:
        if value is None:
            return
        self.names.append(name)
        for key, scalar in _flattened(name, value):
            if key in DROPPED:
                continue
            if self.kept is None or len(self.kept) >= MAX_ATTRIBUTES:
                self.dropped.append(name)
                return
            self.kept.setdefault(key[:MAX_KEY_CHARACTERS] or "_", self._bounded(scalar))

    def _bounded(self, value: JSON) -> JSON:
        if isinstance(value, list):
            value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if isinstance(value, int) and abs(value) > MAX_INTEGER:
            value = str(value)
        if not isinstance(value, str) or len(value) * 4 <= ATTRIBUTE_BYTES:
            return value
        return self._redact(clean_text(value[:SEEN_CHARACTERS]), ATTRIBUTE_BYTES).text


def _flattened(name: str, value: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield an object's values under the names of their paths: `host.name`."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key, inner in value.items():
        if inner is not None:
            yield from _flattened(f"{name}.{key}", inner)
