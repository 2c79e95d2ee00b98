"""Whatever is posted is read, or refused by one of three named faults."""

import gzip
import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from diagnostics.rest.batches import (
    RefusedItem,
    TooLargeError,
    WrongShapeError,
    inflate,
    read_item,
    read_items,
    read_lines,
)
from failsoft.events import PostedEvent
from failsoft.json_values import JSON
from failsoft.parsing.strict import JsonTextError, parse_json
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
    assert isinstance(read_item(item, PostedEvent), PostedEvent | RefusedItem)


@given(st.dictionaries(st.sampled_from(sorted(wire_event())), values, max_size=3))
def test_no_field_of_an_event_makes_the_check_fail(changes: dict[str, JSON]) -> None:
    checked = read_item({**wire_event(), **changes}, PostedEvent)
    if isinstance(checked, RefusedItem):
        assert all(fault["code"] and fault["message"] for fault in checked.errors)


@pytest.mark.parametrize("body", [b'{"events": [{"name": "answered"}]}', b'{"a": 1, "b": [{}]}'])
def test_an_object_around_a_list_of_items_is_named_as_such(body: bytes) -> None:
    with pytest.raises(WrongShapeError, match="Post the array itself, without an object around"):
        read_items(body)


@pytest.mark.parametrize("body", [b'{"name": "x", "repairs": [{}]}', b'{"tags": ["a"], "b": []}'])
def test_an_item_with_lists_stays_one_item(body: bytes) -> None:
    assert read_items(body) == [parse_json(body)]


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
    refused = read_item({"event_id": "x" * 100}, PostedEvent)
    assert isinstance(refused, RefusedItem)
    assert refused.event_id == "x" * 64
    others: list[JSON] = [None, 7, {"event_id": 7}]
    for item in others:
        refused = read_item(item, PostedEvent)
        assert isinstance(refused, RefusedItem)
        assert refused.event_id is None


def test_more_keys_than_memory_should_hold_are_refused() -> None:
    crowd = b"[{" + b",".join(b'"k%d":1' % n for n in range(100_001)) + b"}]"
    with pytest.raises(TooLargeError, match="100000 keys"):
        read_items(crowd)


def test_keys_inside_of_texts_do_not_count_as_keys() -> None:
    written = json.dumps({"a": 1}) * 150_000
    assert read_items(json.dumps([{"text": written}]).encode()) == [{"text": written}]


A, B = '{"a": 1}', '{"b": 2}'


def located(item: object) -> tuple[str, str]:
    assert isinstance(item, RefusedItem)
    (fault,) = item.errors
    return fault["code"], fault["message"]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        (f'[{A},\n{B},\n {{"c": }}, {A}]', [1, 2]),
        (f"[{A}, {B} {A}]", [1, 2]),
        (f"[{A}, {B},]", [1, 2]),
        (f"[{A}, {B}", [1, 2]),
        (f"[{A}, {B}] x", [1, 2]),
        (f'[{A},\n{{"😀": 3}},\n{{"c": "\n"}}]', [1, 3]),
        (f"\ufeff [{A},{B},\n\n   {{c: 1}}]", [1, 2]),
    ],
    ids=["value", "comma", "trailing comma", "cut off", "after it", "line break", "key"],
)
def test_items_before_a_syntax_error_are_read_and_the_error_is_located(
    text: str, items: list[int]
) -> None:
    *read, rest = read_items(text.encode())
    assert [next(iter(i.values())) for i in read if isinstance(i, dict)] == items
    assert len(read) == len(items)
    with pytest.raises(JsonTextError) as of_whole:
        parse_json(text.encode())
    assert located(rest) == ("not_json", f"{of_whole.value}; nothing after it was read")


def test_an_item_that_only_strict_readers_refuse_costs_itself() -> None:
    deep = "[" * 300 + "]" * 300
    body = f'[{A},\n {{"a": 1, "a": 2}}, {deep}, {B}, NaN]'.encode()
    first, twice, too_deep, second, _ = read_items(body)
    assert (first, second) == ({"a": 1}, {"b": 2})
    with pytest.raises(JsonTextError) as of_whole:
        parse_json(body)
    assert located(twice) == ("duplicate_key", str(of_whole.value))
    assert located(too_deep)[0] == "too_deep"


@pytest.mark.parametrize(
    "body", [b"", b"[", b"[{", b"hello", b"[x, 1]", b'["a", 1, x]', b'[{"a": 1, "a": 2}]']
)
def test_a_body_without_an_object_before_its_error_is_refused_whole(body: bytes) -> None:
    with pytest.raises(JsonTextError):
        read_items(body)


def test_a_broken_array_of_too_many_items_is_too_large() -> None:
    with pytest.raises(TooLargeError):
        read_items(b"[" + b"{}," * 1_001 + b"x]")


@example([{}, 10], 6)
@example([{}, 1e300], 7)
@given(st.lists(values, min_size=1, max_size=5), st.integers(1, 200))
def test_no_item_is_read_otherwise_because_the_array_is_cut_off(
    items: list[JSON], kept: int
) -> None:
    text = json.dumps(items)
    with suppress(*FAULTS):
        whole, cut = read_items(text.encode()), read_items(text[:kept].encode())
        complete = [item for item in cut if not isinstance(item, RefusedItem)]
        assert repr(complete) == repr(list(whole)[: len(complete)])
