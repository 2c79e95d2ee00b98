"""Whatever is posted is read, or refused by one of three named faults."""

import gzip
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.rest.batches import (
    RefusedItem,
    TooLargeError,
    WrongShapeError,
    inflate,
    read_event,
    read_items,
    read_lines,
)
from failsoft.events import PostedEvent
from failsoft.json_values import JSON
from failsoft.parsing.strict import JsonTextError
from tests.diagnostics.builders import wire_event

FAULTS = (WrongShapeError, TooLargeError, JsonTextError)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from(["graph.a.degraded", "2026-11-21T00:00:00Z", "\0", "\ud800"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_make_a_reader_fail_otherwise(body: bytes) -> None:
    for read in (read_items, read_lines, inflate):
        with suppress(*FAULTS):
            read(body)


@given(st.dictionaries(st.sampled_from(sorted(wire_event())), values) | values)
def test_no_item_makes_the_check_fail(item: JSON) -> None:
    assert isinstance(read_event(item), PostedEvent | RefusedItem)


@given(st.dictionaries(st.sampled_from(sorted(wire_event())), values, max_size=3))
def test_no_field_of_an_event_makes_the_check_fail(changes: dict[str, JSON]) -> None:
    checked = read_event({**wire_event(), **changes})
    if isinstance(checked, RefusedItem):
        assert all(fault["code"] and fault["message"] for fault in checked.errors)


def test_a_byte_order_mark_is_passed_over() -> None:
    assert read_items(b"\xef\xbb\xbf[1]") == [1]
    assert read_lines(b"\xef\xbb\xbf1\n2") == [1, 2]


def test_lines_may_end_in_either_way_and_be_empty() -> None:
    assert read_lines(b'{"a":1}\r\n\r\n  \n{"a":2}') == [{"a": 1}, {"a": 2}]


def test_gzip_of_many_parts_or_cut_off_is_no_surprise() -> None:
    packed = gzip.compress(json.dumps([1, 2]).encode())
    assert inflate(packed) == b"[1, 2]"
    assert inflate(packed + packed) == b"[1, 2][1, 2]"
    with pytest.raises(JsonTextError, match="cut off"):
        inflate(packed[:-1])
    with pytest.raises(JsonTextError, match="not gzip"):
        inflate(packed + b"tail")
    with pytest.raises(JsonTextError):
        inflate(b"")


def test_the_id_of_a_refused_item_is_told_as_far_as_it_was_given() -> None:
    refused = read_event({"event_id": "x" * 100})
    assert isinstance(refused, RefusedItem)
    assert refused.event_id == "x" * 64
    others: list[JSON] = [None, 7, {"event_id": 7}]
    for item in others:
        refused = read_event(item)
        assert isinstance(refused, RefusedItem)
        assert refused.event_id is None


def test_more_keys_than_memory_should_hold_are_refused() -> None:
    crowd = b"[{" + b",".join(b'"k%d":1' % n for n in range(100_001)) + b"}]"
    with pytest.raises(TooLargeError, match="100000 keys"):
        read_items(crowd)


def test_keys_inside_of_texts_do_not_count_as_keys() -> None:
    written = json.dumps({"a": 1}) * 150_000
    assert read_items(json.dumps([{"text": written}]).encode()) == [{"text": written}]
