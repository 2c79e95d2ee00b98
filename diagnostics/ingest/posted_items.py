"""Items as their senders shape them, in the wire format: log shippers add and rename keys.

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
# Logstash keeps the line that it has read: the answer once more.
DROPPED = frozenset({"event.original"})
ATTRIBUTE_BYTES = 1_024
# So much is looked at, so that nothing secret is cut before it is recognised.
SEEN_CHARACTERS = 16_384
# Seconds, milliseconds, microseconds and nanoseconds since 1970 do not meet before 2200.
LATEST_SECONDS = 7_258_118_400
UNITS = (1, 1_000, 1_000_000, 1_000_000_000)
TIME = TypeAdapter(PlausibleTime)
Item = dict[str, JSON]


@dataclass(frozen=True, slots=True)
class ShapedItem:
    """An item in the wire format; which of its keys no event has, and which found no room."""

    item: JSON
    has_own_id: bool = True
    unknown: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def is_in_shape(item: JSON) -> bool:
    """Whether an item is an event as it stands: most are."""
    return (
        isinstance(item, dict)
        and item.keys() <= EVENT_FIELDS
        and item.get("event_id") is not None
        and "occurred_at" in item
        and not is_answered(item.get("name"))
    )


def shape_item(item: JSON, redact: Redact, id_key: bytes) -> ShapedItem:
    """Return an item in the wire format; `id_key` is what derived ids are made with."""
    if not isinstance(item, dict):
        return ShapedItem(item)
    opened = _opened(item)
    fields = ANSWER_FIELDS if is_answered(opened.get("name")) else EVENT_FIELDS
    shaped = {name: opened[name] for name in opened.keys() & fields}
    more = {name: value for name, value in opened.items() if name not in fields}
    if (time := _take_time(shaped, more)) is not None:
        shaped["occurred_at"] = time
    unknown = _Attributes(shaped.get("attributes"), redact)
    unknown.add_all(more)
    if unknown.kept is not None:
        shaped["attributes"] = unknown.kept
    has_own_id = shaped.get("event_id") is not None
    if not has_own_id:
        shaped["event_id"] = _derive_id(item, shaped.get("occurred_at"), id_key)
    return ShapedItem(shaped, has_own_id, tuple(unknown.names), tuple(unknown.dropped))


def describe_unknown(shaped: Mapping[int, ShapedItem]) -> list[dict[str, str]]:
    """Return what a sender should know of the keys that no event has, one entry a key."""
    dropped = {name for one in shaped.values() for name in one.dropped}
    names = dict.fromkeys(name for one in shaped.values() for name in one.unknown)
    return [_describe(name, name in dropped) for name in islice(names, MAX_ATTRIBUTES)]


def _describe(name: str, is_dropped: bool) -> dict[str, str]:
    shown = name[:MAX_KEY_CHARACTERS]
    near = get_close_matches(shown, (EVENT_FIELDS | ANSWER_FIELDS) - {shown}, n=1, cutoff=0.8)
    said = "unknown field, taken as an attribute"
    if is_dropped:
        said = f"unknown field, dropped: an event has at most {MAX_ATTRIBUTES} attributes"
    path = "/" + shown.replace("~", "~0").replace("/", "~1")
    asked = "".join(f"; did you mean {other}?" for other in near)
    return {"path": path, "code": "unknown_field", "message": said + asked}


def _opened(item: Item) -> Item:
    """Open an item that holds another one as JSON text and is no event itself."""
    if _is_named(item):
        return item
    for key in WRAPPINGS:
        inner = _parsed(item.get(key))
        if inner is not None and _is_named(inner):
            return {**{name: value for name, value in item.items() if name != key}, **inner}
    return item


def _is_named(item: Item) -> bool:
    name = item.get("name")
    return is_answered(name) or (isinstance(name, str) and name.startswith("graph."))


def _parsed(text: JSON) -> Item | None:
    # A million short keys in one text would become 85 MB.
    if not isinstance(text, str) or text.count('":') > MAX_NODES:
        return None
    try:
        value = parse_json(text.encode("utf-8", "surrogatepass"))
    except JsonTextError:
        return None
    return value if isinstance(value, dict) else None


def _take_time(shaped: Item, more: Item) -> str | None:
    """Take the time out of the keys it may have; None where it is told or no key holds one."""
    if shaped.get("occurred_at") is not None:
        return None
    for key in TIME_KEYS:
        if (at := _moment(more.get(key))) is not None:
            del more[key]
            return at.isoformat()
    return None


def _moment(value: JSON) -> datetime | None:
    """Read a time: RFC 3339, or a number since 1970 whose unit its size tells."""
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
    """The attributes of an item with what its unknown keys hold, as far as there is room."""

    def __init__(self, told: JSON, redact: Redact) -> None:
        self._redact = redact
        # What is no object is left for the check to refuse.
        self.kept: Item | None = dict(told) if isinstance(told, dict) else {}
        if told is not None and not isinstance(told, dict):
            self.kept = None
        self.names = list[str]()
        self.dropped = list[str]()

    def add_all(self, more: Item) -> None:
        for name, value in more.items():
            if value is None:
                continue
            self.names.append(name)
            for key, scalar in _flattened(name, value):
                if not self._add(key, scalar):
                    self.dropped.append(name)
                    break

    def _add(self, key: str, value: JSON) -> bool:
        if key in DROPPED:
            return True
        if self.kept is None or len(self.kept) >= MAX_ATTRIBUTES:
            return False
        self.kept.setdefault(key[:MAX_KEY_CHARACTERS] or "_", self._bounded(value))
        return True

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


def _derive_id(item: Item, occurred_at: JSON, id_key: bytes) -> str:
    """Derive the id from all of an item: a hash with a key, for a short secret could be guessed."""
    written = json.dumps(item, sort_keys=True, separators=(",", ":"))
    digest = hmac.digest(id_key, written.encode("utf-8", "surrogatepass"), "sha256")
    at = _moment(occurred_at) if isinstance(occurred_at, str) else None
    return str(uuid7(at or EPOCH, digest))
