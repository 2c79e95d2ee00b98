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
from diagnostics.ingest.otlp.telemetry import LogRecord, MalformedError, Span, TooManyError
from tests.diagnostics import otlp_bodies as bodies

Reader = Callable[[bytes], Iterator[Span | LogRecord | None]]
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
            if item is None:
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
    assert first is not None
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
    assert span is not None
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
        wrap(1, 2, 2, inner=b"\x0a\xff"),
    ],
)
def test_what_is_no_protobuf_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedError):
        list(protobuf.read_spans(body))


def test_a_resource_that_is_no_protobuf_is_malformed() -> None:
    resource, span = wrap(1, inner=b"\xff\xff"), wrap(2, 2, inner=b"")
    with pytest.raises(MalformedError):
        list(protobuf.read_spans(wrap(1, inner=resource + span)))


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ("[]", "/"),
        ("null", "/"),
        ('{"resourceSpans": 1}', "/resourceSpans"),
        ('{"resourceSpans": [1]}', "/resourceSpans/0"),
        ('{"resourceSpans": [{"resource": []}]}', "/resourceSpans/0/resource"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}', "/spans/0"),
        ("{", "not JSON"),
        ('{"a": NaN}', "not JSON"),
        ("\xff", "not JSON"),
    ],
)
def test_json_of_another_shape_is_malformed_with_its_place(document: str, place: str) -> None:
    with pytest.raises(MalformedError, match=place):
        list(json_encoding.read_spans(document.encode("latin-1")))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"traceId": "xyz"}, "/traceId: expected hex"),
        ({"traceId": 7}, "/traceId: expected a string"),
        ({"startTimeUnixNano": "soon"}, "/startTimeUnixNano"),
        ({"startTimeUnixNano": True}, "/startTimeUnixNano"),
        ({"attributes": [{"key": "error.type", "value": {"stringValue": 1}}]}, "stringValue"),
        ({"attributes": [{"key": "error.type", "value": {"boolValue": 1}}]}, "boolValue"),
        ({"attributes": [{"key": "error.type", "value": {"doubleValue": "x"}}]}, "doubleValue"),
        ({"attributes": [{"key": "error.type", "value": {"arrayValue": {"values": 1}}}]}, "values"),
        ({"status": 1}, "/status"),
    ],
)  # fmt: skip
def test_fields_of_another_type_are_malformed_with_their_place(
    change: dict[str, Any], place: str
) -> None:
    document = json.loads(bodies.as_json(bodies.traces(bodies.span())))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0] |= change
    with pytest.raises(MalformedError, match=place):
        list(json_encoding.read_spans(json.dumps(document).encode()))


def test_json_reads_numbers_in_every_form() -> None:
    document = json.loads(bodies.as_json(bodies.traces(bodies.span())))
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["traceId"] = bodies.TRACE.upper()
    span["startTimeUnixNano"] = bodies.START_NS
    span["attributes"] = [
        {"key": "failsoft.a", "value": {"intValue": 7}},
        {"key": "failsoft.b", "value": {"doubleValue": "Infinity"}},
        {"key": "failsoft.c", "value": {"doubleValue": 10**400}},
        {"key": "failsoft.d", "value": {"bytesValue": "AAAA"}},
        {"key": "failsoft.e"},
    ]
    (found,) = json_encoding.read_spans(json.dumps(document).encode())
    assert found is not None
    assert (found.trace_id, found.started_ns) == (bodies.TRACE, bodies.START_NS)
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
        assert found[-1] is not None
        assert all(item is None for item in found[:-1])


def test_a_log_record_beyond_its_bounds_is_left_out_alone() -> None:
    wide = bodies.log_record("x", {"failsoft.a": [1] * 20_001})
    request = bodies.logs(wide, bodies.log_record("y"))
    for reader, body in (
        (protobuf.read_logs, request.SerializeToString()),
        (json_encoding.read_logs, bodies.as_json(request)),
    ):
        first, second = reader(body)
        assert first is None
        assert second is not None


def test_json_with_too_many_brackets_is_refused_before_it_is_read() -> None:
    with pytest.raises(TooManyError):
        list(json_encoding.read_logs(b"[" * 300_001))
