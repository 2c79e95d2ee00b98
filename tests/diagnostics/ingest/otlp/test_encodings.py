"""Both encodings read the same; hostile bodies are refused, bounded in work and memory."""

import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnostics.ingest.otlp import json_encoding, protobuf
from diagnostics.ingest.otlp.mapping import NoEventError, draft_log, draft_span
from diagnostics.ingest.otlp.telemetry import (
    LogRecord,
    MalformedError,
    Span,
    TooManyError,
    UnreadItem,
)
from tests.diagnostics import otlp_bodies as bodies
from tests.diagnostics.otlp_bodies import before_1_0, in_snake_case

Reader = Callable[[bytes], Iterator[Span | LogRecord | UnreadItem]]
READERS: list[Reader] = [
    protobuf.read_spans,
    protobuf.read_logs,
    json_encoding.read_spans,
    json_encoding.read_logs,
]
MEBIBYTE = 1 << 20
RICH = {
    "failsoft.attempt": 2,
    "gen_ai.request.temperature": 0.5,
    "gen_ai.output.messages": [{"parts": [{"content": "{}", "ok": True}]}],
    "llm.invocation_parameters": b"bytes say nothing",
}


def read_all(reader: Reader, body: bytes) -> list[Any]:
    """Read and draft everything; refusals are the documented ones."""
    found: list[Any] = []
    try:
        for item in reader(body):
            if isinstance(item, UnreadItem):
                continue
            try:
                is_span = isinstance(item, Span)
                found += draft_span(item) if is_span else draft_log(item)  # type: ignore[arg-type] # by kind
            except NoEventError:
                continue
    except (MalformedError, TooManyError):
        return []
    return found


def test_both_encodings_of_spans_read_the_same() -> None:
    event = ("gen_ai.choice", {"message": "a", "unknown": 1})
    request = bodies.traces(
        bodies.span(RICH, events=[event], is_error=True), bodies.span(span_id="1" * 16)
    )
    packed = list(protobuf.read_spans(request.SerializeToString()))
    assert packed == list(json_encoding.read_spans(bodies.as_json(request)))
    first = packed[0]
    assert isinstance(first, Span)
    assert (first.trace_id, first.is_error, first.dropped) == (bodies.TRACE, True, 1)
    assert first.attributes["failsoft.attempt"] == 2


def test_both_encodings_of_log_records_read_the_same() -> None:
    request = bodies.logs(bodies.log_record("gen_ai.choice", RICH, {"a": [1, None]}))
    packed = list(protobuf.read_logs(request.SerializeToString()))
    assert packed == list(json_encoding.read_logs(bodies.as_json(request)))


def test_a_resource_may_stand_behind_its_spans() -> None:
    request = bodies.traces(bodies.span())
    holder = request.resource_spans[0]
    resource = holder.resource.SerializeToString()
    holder.ClearField("resource")
    inner = holder.SerializeToString() + b"\x0a" + varint(len(resource)) + resource
    body = b"\x0a" + varint(len(inner)) + inner
    (span,) = protobuf.read_spans(body)
    assert isinstance(span, Span)
    assert span.resource["service.name"] == "support-bot"


def varint(value: int) -> bytes:
    packed = bytearray()
    while value > 0x7F:
        packed.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*packed, value])


def wrap(*tags: int, inner: bytes) -> bytes:
    for tag in reversed(tags):
        inner = bytes([tag << 3 | 2]) + varint(len(inner)) + inner
    return inner


def test_unknown_fields_are_passed_over() -> None:
    body = bodies.traces(bodies.span()).SerializeToString()
    extra = b"\x98\x06\x07" + b"\xa1\x06" + bytes(8) + b"\xad\x06" + bytes(4)
    assert len(list(protobuf.read_spans(extra + body))) == 1
    document = json.loads(bodies.as_json(bodies.traces(bodies.span())))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["later"] = {"a": 1}
    assert len(list(json_encoding.read_spans(json.dumps(document).encode()))) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        b"\x0a\x05abc",
        b"\x0b",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x09\x01",
        b"\x0d\x01",
    ],
)
def test_what_is_no_protobuf_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError):
        list(protobuf.read_spans(body))


def test_an_unread_span_or_resource_costs_nothing_beside_it() -> None:
    good = bodies.traces(bodies.span()).SerializeToString()
    cut = wrap(1, 2, 2, inner=b"\x0a\xff")
    resource = wrap(1, inner=wrap(1, inner=b"\xff\xff") + wrap(2, 2, inner=b"") * 2)
    *unread, found = protobuf.read_spans(cut + resource + good)
    assert len(unread) == 3
    assert all(isinstance(item, UnreadItem) for item in unread)
    assert isinstance(found, Span)


@pytest.mark.parametrize("scopes", [2, 1000])
def test_texts_that_are_not_utf_8_are_mended_at_any_depth(scopes: int) -> None:
    """In names, resources and lists of values; 1000 was the number of library spans."""
    text = "@@" * 65
    deep = {"failsoft.a": [{"k": [text]}], "other": text}
    request = bodies.traces(
        bodies.span(deep, name=text, events=[(text, {"failsoft.b": text})]),
        resource={"failsoft.c": text},
        scope=text,
    )
    holder = request.resource_spans[0]
    inner = holder.scope_spans[0].SerializeToString()
    resource = holder.resource.SerializeToString()
    tag = varint(scopes << 3 | 2)
    inner = wrap(1, inner=resource) + tag + varint(len(inner)) + inner
    (found,) = protobuf.read_spans(wrap(1, inner=inner).replace(b"@@", b"\xe9\xe9"))
    assert isinstance(found, Span)
    mended = "\ufffd" * 130
    assert found.name == found.scope == found.events[0].name == mended
    assert found.attributes["failsoft.a"] == [{"k": [mended]}]
    assert found.events[0].attributes == {"failsoft.b": mended}
    assert found.resource["failsoft.c"] == mended
    assert found.attributes["gen_ai.request.model"] == "claude-haiku-4"


def test_mending_is_bounded_over_all_of_a_request() -> None:
    bad = wrap(2, inner=wrap(9, inner=b"\x0a\x01\xff") * 1_000)
    found = list(protobuf.read_spans(wrap(1, 2, inner=bad * 100)))
    assert isinstance(found[0], Span)
    assert found[-1] == UnreadItem("a text is not UTF-8")


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ("[]", "/"),
        ("null", "/"),
        ('{"resourceSpans": 1}', "/resourceSpans"),
        ("{", "not JSON"),
        ('{"a": nan}', "not JSON"),
        ("\xff", "not JSON"),
    ],
)
def test_a_request_of_another_shape_is_malformed_with_its_place(document: str, place: str) -> None:
    with pytest.raises(MalformedError, match=place):
        list(json_encoding.read_spans(document.encode("latin-1")))


def read_beside(spans: list[object] | None = None, scopes: object = None) -> list[Any]:
    """Read spans or scopes before a good span of its own resource."""
    document = json.loads(bodies.as_json(bodies.traces(bodies.span())))
    holder: dict[str, Any] = {"scopeSpans": [{"spans": spans}] if scopes is None else scopes}
    document["resourceSpans"].insert(0, holder)
    *others, found = json_encoding.read_spans(json.dumps(document).encode())
    assert isinstance(found, Span)
    return others


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"traceId": "xyz"}, "/traceId: expected hex"),
        ({"traceId": 7}, "/traceId: expected a string"),
        ({"startTimeUnixNano": "soon"}, "/startTimeUnixNano"),
        ({"startTimeUnixNano": True}, "/startTimeUnixNano"),
        ({"startTimeUnixNano": 10**30}, "/startTimeUnixNano: expected an integer of 64 bits"),
        ({"startTimeUnixNano": "-99999999999999999999"}, "/startTimeUnixNano"),
        ({"attributes": [{"key": "error.type", "value": {"stringValue": 1}}]}, "stringValue"),
        ({"attributes": [{"key": "error.type", "value": {"boolValue": 1}}]}, "boolValue"),
        ({"attributes": [{"key": "error.type", "value": {"doubleValue": "x"}}]}, "doubleValue"),
        ({"attributes": [{"key": "error.type", "value": {"arrayValue": {"values": 1}}}]}, "values"),
        ({"attributes": [7]}, "/attributes/0: expected an object"),
        ({"attributes": {"error.type": "x"}}, "/attributes: expected a list"),
        ({"status": 1}, "/status"),
    ],
)  # fmt: skip
def test_a_field_of_another_type_costs_its_span_only(change: dict[str, Any], place: str) -> None:
    document = json.loads(bodies.as_json(bodies.traces(bodies.span())))
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    unread, found = read_beside([{**span, **change}, span])
    assert isinstance(unread, UnreadItem)
    assert place in unread.reason
    assert isinstance(found, Span)


@pytest.mark.parametrize(
    ("scopes", "reasons"),
    [
        ([{"spans": [7]}], ["/resourceSpans/0/scopeSpans/0/spans/0: expected an object"]),
        ([7, {"spans": 7}], ["/scopeSpans/0: expected an object", "/spans: expected a list"]),
        ({}, ["/scopeSpans: expected a list"]),
        ([{"scope": 7, "spans": [{}]}], ["/scopeSpans/0/scope: expected an object"]),
        ([{"records": [{}]}], ["/scopeSpans/0/records: expected the name spans"]),
    ],
)
def test_a_part_of_another_shape_costs_itself_only(scopes: object, reasons: list[str]) -> None:
    unread = read_beside(scopes=scopes)
    assert len(unread) == len(reasons)
    assert all(item.reason.endswith(reason) for item, reason in zip(unread, reasons, strict=True))


def test_a_resource_that_cannot_be_read_is_read_once() -> None:
    wide = [{"key": "failsoft.a", "value": {"arrayValue": {"values": [{}] * 20_001}}}]
    document = {
        "resourceSpans": [
            {"resource": {"attributes": wide}, "scopeSpans": [{"spans": [{}] * 9_000}]}
        ]
    }
    found = list(json_encoding.read_spans(json.dumps(document).encode()))
    assert len(found) == 9_000
    assert all(item is found[0] for item in found)


@pytest.mark.parametrize(
    "rename", [in_snake_case, before_1_0, lambda document: in_snake_case(before_1_0(document))]
)
def test_other_names_of_the_fields_are_read(rename: Callable[[Any], Any]) -> None:
    spans = bodies.traces(bodies.span(RICH, events=[("e", RICH)], is_error=True), scope="s")
    records = bodies.logs(bodies.log_record("gen_ai.choice", RICH, {"a": [1, None]}))
    for request, read in ((spans, json_encoding.read_spans), (records, json_encoding.read_logs)):
        written = bodies.as_json(request)
        renamed = json.dumps(rename(json.loads(written))).encode()
        assert list(read(renamed)) == list(read(written))


def test_a_byte_order_mark_a_nan_and_a_byte_that_is_not_utf_8_are_read() -> None:
    written = bodies.as_json(bodies.traces(bodies.span({"failsoft.a": "#", "failsoft.b": 0.5})))
    body = b"\xef\xbb\xbf" + written.replace(b"#", b"\xe9").replace(b"0.5", b"NaN")
    (found,) = json_encoding.read_spans(body)
    assert isinstance(found, Span)
    assert found.attributes["failsoft.a"] == "\ufffd"


SPANS = bodies.traces(bodies.span(), bodies.span(span_id="1" * 16))
RECORDS = bodies.logs(bodies.log_record("x"), bodies.log_record("y"))
SPANS_BELONG, RECORDS_BELONG = "spans belong at /v1/traces", "log records belong at /v1/logs"


@pytest.mark.parametrize(
    ("read", "body", "reason"),
    [
        (protobuf.read_logs, SPANS.SerializeToString(), SPANS_BELONG),
        (protobuf.read_spans, RECORDS.SerializeToString(), RECORDS_BELONG),
        (json_encoding.read_logs, bodies.as_json(SPANS), SPANS_BELONG),
        (json_encoding.read_spans, bodies.as_json(RECORDS), RECORDS_BELONG),
    ],
)
def test_what_is_sent_to_the_address_of_the_other_signal_is_named(
    read: Reader, body: bytes, reason: str
) -> None:
    found = list(read(body))
    assert len(found) == 2
    assert all(isinstance(item, UnreadItem) and reason in item.reason for item in found)


@pytest.mark.parametrize("name", ["resourceMetrics", "batches", "resourcespans"])
def test_a_request_under_another_name_is_named(name: str) -> None:
    (unread,) = json_encoding.read_spans(json.dumps({name: [{"a": 1}]}).encode())
    assert unread == UnreadItem(f"/{name}: expected the name resourceSpans")


def test_an_empty_request_has_nothing_to_say() -> None:
    for body in (b"{}", b'{"resourceSpans": []}', b'{"resourceSpans": [{"resource": {}}]}'):
        assert list(json_encoding.read_spans(body)) == []
    assert list(protobuf.read_spans(b"")) == []


def test_json_reads_numbers_in_every_form() -> None:
    document = json.loads(bodies.as_json(bodies.traces(bodies.span())))
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["traceId"] = bodies.TRACE.upper()
    span["startTimeUnixNano"] = bodies.START_NS
    span["endTimeUnixNano"] = 1.75e18
    span["attributes"] = [
        {"key": "failsoft.a", "value": {"intValue": 7}},
        {"key": "failsoft.b", "value": {"doubleValue": "Infinity"}},
        {"key": "failsoft.c", "value": {"doubleValue": 10**400}},
        {"key": "failsoft.d", "value": {"bytesValue": "AAAA"}},
        {"key": "failsoft.e"},
    ]
    (found,) = json_encoding.read_spans(json.dumps(document).encode())
    assert isinstance(found, Span)
    assert (found.trace_id, found.started_ns) == (bodies.TRACE, bodies.START_NS)
    assert found.ended_ns == 1_750_000_000_000_000_000
    infinite = float("inf")
    assert list(found.attributes.values()) == [7, infinite, infinite, None, None]


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_never_break_a_reader(body: bytes) -> None:
    for reader in READERS:
        read_all(reader, body)


WHOLE = bodies.traces(bodies.span(RICH), bodies.span(span_id="1" * 16))
PACKED = WHOLE.SerializeToString()
WRITTEN = bodies.as_json(WHOLE)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, len(PACKED) - 1), st.binary(max_size=4), st.integers(0, 4))
def test_damaged_requests_never_break_a_reader(at: int, put: bytes, taken: int) -> None:
    read_all(protobuf.read_spans, PACKED[:at])
    read_all(protobuf.read_spans, PACKED[:at] + put + PACKED[at + taken :])
    read_all(json_encoding.read_spans, WRITTEN[:at] + put + WRITTEN[at + taken :])


JSON_NAMES = [
    *("resourceSpans", "scopeSpans", "spans", "resource", "attributes", "status"),
    *("key", "value", "stringValue", "kvlistValue", "values"),
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(JSON_NAMES), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=80, deadline=None)
@given(json_values)
def test_json_of_any_shape_never_breaks_a_reader(value: object) -> None:
    body = json.dumps({"resourceSpans": [value], "resourceLogs": [value]}).encode()
    read_all(json_encoding.read_spans, body)
    read_all(json_encoding.read_logs, body)


def nested(levels: int) -> bytes:
    """An AnyValue in an AnyValue in ..."""
    value = b""
    for _ in range(levels):
        value = wrap(5, 1, inner=value)
    return value


def told(value: bytes) -> bytes:
    """A known attribute, as a field of a span."""
    return wrap(9, inner=wrap(1, inner=b"failsoft.a") + value)


FOUR = 4 * MEBIBYTE
ATTRIBUTES = b"\x4a\x00"
HOSTILE = {
    "empty resources": b"\x0a\x00" * (FOUR // 2),
    "empty spans": wrap(1, 2, inner=b"\x12\x00" * (FOUR // 2 - 20)),
    "empty attributes": wrap(1, 2, 2, inner=ATTRIBUTES * (FOUR // 2 - 20)),
    "attributes of many spans": wrap(1, 2, inner=wrap(2, inner=ATTRIBUTES * 99) * 9_000),
    "many attributes": wrap(1, 2, 2, inner=told(b"") * 100_000),
    "deep": wrap(1, 2, 2, inner=told(wrap(2, inner=nested(5_000)))),
    "wide": wrap(1, 2, 2, inner=told(wrap(2, 5, inner=b"\x0a\x00" * 400_000))),
    "short spans": wrap(1, 2, inner=b"\x12\x02\x30\x01" * 900_000),
    "[ open lists": b"[" * FOUR,
    "[ empty lists": b"[" + b"[]," * (FOUR // 3 - 2) + b"[]]",
    "[ empty objects": b'{"resourceSpans":[' + b"{}," * 1_300_000 + b"{}]}",
    "[ huge number": b'{"resourceSpans":' + b"9" * 4_000_000 + b"}",
    "[ small numbers": b'{"resourceSpans":[' + b"1," * 2_000_000 + b"1]}",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies_take_bounded_memory(name: str) -> None:
    reader = json_encoding.read_spans if name.startswith("[") else protobuf.read_spans
    tracemalloc.start()
    try:
        read_all(reader, HOSTILE[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * MEBIBYTE


def test_more_items_than_a_request_may_have_are_refused() -> None:
    body = wrap(1, 2, inner=b"\x12\x00" * 10_001)
    with pytest.raises(TooManyError):
        list(protobuf.read_spans(body))
    spans = ",".join(["{}"] * 10_001)
    document = f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}'
    with pytest.raises(TooManyError):
        list(json_encoding.read_spans(document.encode()))


def test_an_item_beyond_its_bounds_is_left_out_alone() -> None:
    big = bodies.span({"failsoft.a": "x" * (MEBIBYTE + 1)}, span_id="1" * 16)
    wide = bodies.span({"failsoft.a": [1] * 20_001}, span_id="2" * 16)
    for reader, body in (
        (protobuf.read_spans, bodies.traces(big, wide, bodies.span()).SerializeToString()),
        (json_encoding.read_spans, bodies.as_json(bodies.traces(wide, bodies.span()))),
    ):
        found = list(reader(body))
        assert isinstance(found[-1], Span)
        assert all(isinstance(item, UnreadItem) for item in found[:-1])


def test_of_many_events_of_a_span_the_last_are_read() -> None:
    asked = [("gen_ai.user.message", {"content": "hi"})] * 100
    answer = ("gen_ai.choice", {"message": '{"content": "a"}'})
    request = bodies.traces(bodies.span(events=[*asked, answer]))
    for reader, body in (
        (protobuf.read_spans, request.SerializeToString()),
        (json_encoding.read_spans, bodies.as_json(request)),
    ):
        (span,) = reader(body)
        assert isinstance(span, Span)
        assert draft_span(span)[0].answer.text == "a"


def test_a_log_record_beyond_its_bounds_is_left_out_alone() -> None:
    wide = bodies.log_record("x", {"failsoft.a": [1] * 20_001})
    request = bodies.logs(wide, bodies.log_record("y"))
    for reader, body in (
        (protobuf.read_logs, request.SerializeToString()),
        (json_encoding.read_logs, bodies.as_json(request)),
    ):
        first, second = reader(body)
        assert isinstance(first, UnreadItem)
        assert isinstance(second, LogRecord)


def test_json_with_too_many_brackets_is_refused_before_it_is_read() -> None:
    with pytest.raises(TooManyError):
        list(json_encoding.read_logs(b"[" * 300_001))


@pytest.mark.parametrize(
    ("code", "is_error"),
    [
        *((code, True) for code in (2, "2", "STATUS_CODE_ERROR", "ERROR", "Error", "error")),
        *((code, False) for code in (0, 1, "1", "STATUS_CODE_OK", "OK", "Unset", None, [2], 3.5)),
    ],
    ids=repr,
)
def test_a_status_is_read_in_any_spelling(code: object, is_error: bool) -> None:
    packed = json.loads(bodies.as_json(bodies.traces(bodies.span())))
    packed["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["status"] = {"code": code}
    (found,) = json_encoding.read_spans(json.dumps(packed).encode())
    assert isinstance(found, Span)
    assert found.is_error is is_error


def test_a_null_beside_a_value_does_not_hide_it() -> None:
    pair = {"key": "gen_ai.request.model", "value": {"intValue": None, "stringValue": "asked-1"}}
    span = {"traceId": bodies.TRACE, "spanId": bodies.SPAN, "attributes": [pair]}
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    (read,) = json_encoding.read_spans(json.dumps(body).encode())
    assert isinstance(read, Span)
    assert read.attributes == {"gen_ai.request.model": "asked-1"}
