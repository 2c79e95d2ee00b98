"""Items as log shippers shape them are brought into the wire format, bounded, and no more."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.ingest.posted_items import (
    ATTRIBUTE_BYTES,
    EVENT_FIELDS,
    describe_unknown,
    is_in_shape,
    shape_item,
)
from diagnostics.rest.batches import RefusedItem, read_item
from failsoft.events import MAX_ATTRIBUTES, PostedEvent
from failsoft.json_values import JSON
from failsoft.redaction import Redacted, Redactor, load_rule_set
from tests.diagnostics.builders import AT, wire_event
from tests.diagnostics.rest.test_batches import values

REDACTOR = Redactor(load_rule_set(), {"correct horse battery": "phrase"})
SECONDS = AT.timestamp()


def redact(text: str, limit: int | None, *, is_name: bool = False) -> Redacted:
    assert not is_name
    return REDACTOR.redact(text, limit)


def shape(item: JSON, id_key: bytes = b"key") -> Any:
    return shape_item(item, redact, id_key).item


def timed(**changes: object) -> dict[str, Any]:
    return wire_event(occurred_at=None, **changes)


def test_an_event_as_documented_is_left_as_it_is() -> None:
    event = wire_event(attributes={"region": "eu"})
    assert is_in_shape(event)
    assert shape(event) == event


def test_an_empty_list_of_attributes_is_none_as_php_writes_them() -> None:
    assert shape(wire_event(attributes=[], host="a"))["attributes"] == {"host": "a"}
    assert shape(timed(attributes=[], time=SECONDS))["attributes"] == {}
    assert shape(timed(attributes=["a"]))["attributes"] == ["a"]


@pytest.mark.parametrize(
    "odd",
    [
        wire_event(event_id=None),
        timed(),
        wire_event(host="a"),
        wire_event(name="answered"),
        {},
        [],
        7,
        None,
    ],
)
def test_any_other_item_is_not_in_shape(odd: JSON) -> None:
    assert not is_in_shape(odd)


@pytest.mark.parametrize(
    "told",
    [
        # Fluent Bit's double and epoch_ms; integers of other loggers; RFC 3339.
        {"date": SECONDS},
        {"date": round(SECONDS * 1e3)},
        {"time": round(SECONDS * 1e6)},
        {"timestamp": round(SECONDS * 1e6) * 1_000},
        {"@timestamp": AT.isoformat()},
        {"timestamp": "2026-11-21T15:32:07.120+01:00"},
        # The first that can be read.
        {"time": "14:32", "date": SECONDS},
        {"time": None, "timestamp": True, "@timestamp": AT.isoformat()},
        {"date": SECONDS + 60, "time": AT.isoformat()},
    ],
)
def test_a_time_is_read_by_the_names_and_units_of_shippers(told: dict[str, Any]) -> None:
    event = read_item(shape(timed(**told)), PostedEvent)
    assert isinstance(event, PostedEvent)
    assert event.occurred_at == AT


@pytest.mark.parametrize("told", [{}, {"date": "yesterday"}, {"date": 1e30}, {"time": [1]}])
def test_without_a_time_the_field_that_is_missing_is_named(told: dict[str, Any]) -> None:
    refused = read_item(shape(timed(**told)), PostedEvent)
    assert isinstance(refused, RefusedItem)
    assert [fault["path"] for fault in refused.errors] == ["/occurred_at"]


def test_the_time_of_the_event_is_not_replaced_by_that_of_the_shipper() -> None:
    shaped = shape(wire_event(**{"@timestamp": "2026-11-21T15:00:00Z"}))
    assert shaped["occurred_at"] == AT.isoformat()
    assert shaped["attributes"] == {"@timestamp": "2026-11-21T15:00:00Z"}


def test_what_is_nested_becomes_attributes_by_its_path_and_lists_become_texts() -> None:
    more = {
        "host": {"name": "web-1", "os": {"type": "linux"}},
        "tags": ["a", 1],
        "big": 2**60,
        "empty": None,
        "ok": True,
        "share": 0.5,
    }
    assert shape(wire_event(**more))["attributes"] == {
        "host.name": "web-1",
        "host.os.type": "linux",
        "tags": '["a",1]',
        "big": str(2**60),
        "ok": True,
        "share": 0.5,
    }


def test_the_attributes_that_were_told_win() -> None:
    shaped = shape(wire_event(host="b", attributes={"host": "a"}))
    assert shaped["attributes"] == {"host": "a"}


def test_more_than_an_event_may_have_is_dropped_and_said() -> None:
    item = shape_item(wire_event(**{f"k{n}": n for n in range(100)}), redact, b"key")
    assert isinstance(item.item, dict)
    assert isinstance(read_item(item.item, PostedEvent), PostedEvent)
    assert len(item.dropped) == 100 - MAX_ATTRIBUTES
    warnings = describe_unknown({0: item})
    assert len(warnings) == MAX_ATTRIBUTES
    many = shape_item(wire_event(labels={f"k{n}": n for n in range(100)}), redact, b"key")
    (warning,) = describe_unknown({0: many})
    assert "dropped: an event has at most 32 attributes" in warning["message"]


def test_a_long_text_is_redacted_and_then_cut() -> None:
    text = "x" * (ATTRIBUTE_BYTES - 10) + " correct horse battery " + "y" * 5_000
    kept = shape(wire_event(line=text))["attributes"]["line"]
    assert len(kept.encode()) <= ATTRIBUTE_BYTES
    assert "correct" not in kept


@pytest.mark.parametrize("key", ["message", "log"])
def test_an_event_that_is_the_text_of_a_log_line_is_opened(key: str) -> None:
    line = json.dumps(timed()) + "\n"
    shaped = shape({key: line, "timestamp": AT.isoformat(), "host": "web-1"})
    event = read_item(shaped, PostedEvent)
    assert isinstance(event, PostedEvent)
    assert event.occurred_at == AT
    assert event.attributes == {"host": "web-1"}


@pytest.mark.parametrize("text", ["started", "{", '{"name": "root"}', "[1]", '{"a":1,' * 2_000])
def test_other_log_lines_are_no_events(text: str) -> None:
    assert isinstance(
        read_item(shape({"message": text, "date": SECONDS}), PostedEvent), RefusedItem
    )


def test_what_logstash_keeps_of_the_line_is_not_kept() -> None:
    event = {"original": "the answer", "sequence": 7}
    assert shape(wire_event(event=event))["attributes"] == {"event.sequence": 7}


def test_an_id_is_that_of_the_content_whatever_its_order() -> None:
    event = wire_event(event_id=None)
    turned = dict(reversed(event.items()))
    assert shape(event)["event_id"] == shape(turned)["event_id"]
    assert shape(event)["event_id"] != shape({**event, "cycle": 2})["event_id"]
    assert shape(event, b"other")["event_id"] != shape(event)["event_id"]
    assert shape({**event, "event_id": None})["event_id"]


def test_the_name_of_a_field_is_proposed_for_one_that_is_like_it() -> None:
    for name in ("promptversion", "finishreason", "environmnt"):
        item = shape_item(wire_event(**{name: "x"}), redact, b"key")
        (warning,) = describe_unknown({0: item})
        (near,) = [
            field for field in EVENT_FIELDS if f"did you mean {field}?" in warning["message"]
        ]
        assert near.replace("_", "")[:6] == name[:6]


KEYS = ["host", "date", "time", "attributes", "message", "@timestamp", "name", "event_id", ""]


@given(st.dictionaries(st.sampled_from([*KEYS, *sorted(EVENT_FIELDS)]), values))
def test_no_item_makes_the_shaping_fail(changes: dict[str, JSON]) -> None:
    for item in (changes, {**wire_event(), **changes}):
        shaped = shape_item(item, redact, b"key")
        assert isinstance(read_item(shaped.item, PostedEvent), PostedEvent | RefusedItem)
        json.dumps(describe_unknown({0: shaped}))
