"""Spans and log records posted over OTLP/HTTP, in both encodings."""

import gzip
import json
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from diagnostics import clock
from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import forget_all
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.api import otlp
from diagnostics.ingest.key_counts import ItemCounts, tallies_of
from diagnostics.ingest.log_answers import PATIENCE, settle_verdicts
from diagnostics.ingest.models import Quota, SpanVerdict
from diagnostics.ingest.quotas import leases
from diagnostics.ingest.rejects import allowance, rejects_of
from diagnostics.store.models import Event, EventPayload
from tests.diagnostics.otlp_bodies import (
    as_json,
    before_1_0,
    in_snake_case,
    key_values,
    log_record,
    logs,
    span,
    traces,
)
from tests.failsoft.redaction.made_up import make
from tests.shifted_clock import SPANS_ENDED, shift_clock

pytestmark = pytest.mark.django_db
PROTOBUF = "application/x-protobuf"
JSON = "application/json"
Post = Callable[..., Any]
Renaming = Callable[[Any], Any]
# A schema under which `{}` is wrong.
STEPS: dict[str, Any] = {"type": "object", "required": ["steps"]}


@pytest.fixture(autouse=True)
def _at_the_time_of_the_spans(db: None) -> None:
    shift_clock(SPANS_ENDED)


@pytest.fixture(autouse=True)
def _nothing_left_over() -> None:
    leases.clear()
    forget_all()
    allowance.clear()


@pytest.fixture
def post(project: Project) -> Post:
    key = issue_key(project, "tests", [Scope.INGEST]).text

    def send(
        body: Message | bytes, kind: str = PROTOBUF, path: str = "/v1/traces", **headers: str
    ) -> Any:
        if isinstance(body, Message):
            body = as_json(body) if kind == JSON else body.SerializeToString()
        told = {"Authorization": f"Bearer {key}", **headers}
        return Client().post(path, body, content_type=kind, headers=told)

    return send


def output(text: str, reason: str = "stop") -> dict[str, str]:
    part = {"type": "text", "content": text}
    message = {"role": "assistant", "parts": [part], "finish_reason": reason}
    return {"gen_ai.output.messages": json.dumps([message])}


def status_of(answer: Any) -> tuple[int, str]:
    """Unpack a google.rpc.Status whose code and length fit a byte each."""
    raw = answer.content
    assert raw[0] == 0x08
    assert raw[2] == 0x12
    length = raw[3] if raw[3] < 0x80 else (raw[3] & 0x7F) + (raw[4] << 7)
    start = 4 if raw[3] < 0x80 else 5
    assert len(raw) == start + length
    return raw[1], raw[start:].decode()


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_a_call_of_a_model_is_an_event_and_again_a_duplicate(post: Post, kind: str) -> None:
    for _ in range(2):
        answer = post(traces(span()), kind)
        assert (answer.status_code, answer["Content-Type"]) == (200, kind)
        assert answer.content == (b"{}" if kind == JSON else b"")
    event = Event.objects.get()
    assert event.name == "graph.chat.succeeded"
    assert (event.provider, event.model) == ("anthropic", "claude-haiku-4")
    assert (event.source, event.release) == ("support-bot", "2026.11.20-2")
    # Found out when the run is over.
    assert (event.environment, event.cycle, event.attempt) == ("prod", 1, None)
    assert (event.input_tokens, event.output_tokens) == (911, 512)
    assert (event.latency_ms, event.finish_reason) == (1840, "stop")


def test_both_encodings_give_the_same_event(post: Post) -> None:
    assert post(traces(span()), PROTOBUF).status_code == 200
    assert post(traces(span()), JSON).status_code == 200
    assert Event.objects.count() == 1


def test_gzip_is_read(post: Post) -> None:
    for number, name in enumerate(("gzip", "x-gzip"), start=1):
        packed = gzip.compress(traces(span(span_id=f"{number:016x}")).SerializeToString())
        answer = post(packed, **{"Content-Encoding": name})
        assert answer.status_code == 200
        assert Event.objects.count() == number


def test_other_spans_are_accepted_and_make_nothing(post: Post) -> None:
    tool = {"gen_ai.operation.name": "execute_tool"}
    answer = post(traces(span(tool), span(tool, span_id="1" * 16)))
    assert (answer.status_code, answer.content) == (200, b"")
    assert not Event.objects.exists()


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_a_refused_span_does_not_stop_the_others(post: Post, kind: str) -> None:
    bad = span({"failsoft.output_mode": "fax"}, span_id="2" * 16)
    answer = post(traces(span(), bad, span(start_ns=0, span_id="3" * 16)), kind)
    assert answer.status_code == 200
    if kind == JSON:
        told = answer.json()["partialSuccess"]
        rejected, message = int(told["rejectedSpans"]), told["errorMessage"]
    else:
        read = ExportTraceServiceResponse.FromString(answer.content).partial_success
        rejected, message = read.rejected_spans, read.error_message
    assert rejected == 2
    assert "item 1: /output_mode" in message
    assert "item 2: its time" in message
    assert Event.objects.count() == 1


WEB = {"http.request.method": "GET"}


def web_span(**changes: Any) -> Any:
    """Make a span that calls no model."""
    packed = span(**{"span_id": "9" * 16, **changes})
    del packed.attributes[:]
    packed.attributes.extend(key_values(WEB))
    return packed


def test_a_byte_that_is_not_utf_8_beside_calls_costs_nothing(post: Post) -> None:
    calls = [span(span_id=f"{number:016x}") for number in range(1, 4)]
    body = traces(*calls, web_span()).SerializeToString().replace(b"GET", b"\xe9ET")
    answer = post(body)
    assert (answer.status_code, answer.content) == (200, b"")
    assert Event.objects.count() == 3


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (web_span(span_id="ab"), "span_id: 8 bytes"),
        (web_span(trace_id="ab" * 8), "trace_id: 16 bytes"),
        (span(span_id="2" * 16, end_time_unix_nano=2**64 - 1), "its time is missing or out of"),
    ],
)
def test_a_bad_id_or_time_costs_its_span_only(post: Post, kind: str, bad: Any, reason: str) -> None:
    answer = post(traces(bad, span()), kind)
    told = answer.json()["partialSuccess"] if kind == JSON else MessageToDict(partial(answer))
    assert (answer.status_code, told["rejectedSpans"]) == (200, "1")
    assert f"item 0: {reason}" in told["errorMessage"]
    assert Event.objects.count() == 1


def test_an_id_that_is_not_hexadecimal_costs_its_span_only(post: Post) -> None:
    body = as_json(traces(web_span(), span())).replace(b"9" * 16, b"span-1")
    told = post(body, JSON).json()["partialSuccess"]
    assert told["rejectedSpans"] == "1"
    assert told["errorMessage"].endswith("/spans/0/spanId: expected hex digits")
    assert Event.objects.count() == 1


@pytest.mark.parametrize(
    ("path", "body", "count", "reason"),
    [
        ("/v1/logs", traces(span()), "rejectedLogRecords", "spans belong at /v1/traces"),
        ("/v1/traces", logs(log_record("x")), "rejectedSpans", "log records belong at /v1/logs"),
    ],
)
@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_nothing_is_accepted_at_the_address_of_the_other_signal_without_a_word(
    post: Post, project: Project, path: str, body: Message, count: str, reason: str, kind: str
) -> None:
    answer = post(body, kind, path)
    told = answer.json()["partialSuccess"] if kind == JSON else MessageToDict(partial(answer))
    if kind == JSON:
        assert told[count] == "1"
    assert reason in told["errorMessage"]
    assert counts_of(project).invalid == 1


@pytest.mark.parametrize("rename", [in_snake_case, before_1_0])
def test_snake_case_and_names_before_1_0_are_stored(post: Post, rename: Renaming) -> None:
    body = as_json(traces(span(), span(span_id="2" * 16)))
    renamed = json.dumps(rename(json.loads(body))).encode()
    assert renamed != body
    assert post(b"\xef\xbb\xbf" + renamed, JSON).content == b"{}"
    assert Event.objects.count() == 2


@pytest.mark.parametrize("name", ["resourceSpans", "scopeSpans", "spans"])
def test_spans_under_a_name_that_no_version_has_are_not_accepted_without_a_word(
    post: Post, name: str
) -> None:
    body = as_json(traces(span())).replace(f'"{name}"'.encode(), b'"otherSpans"')
    answer = post(body, JSON)
    assert Event.objects.count() == 0
    assert "otherSpans" in answer.content.decode()


def test_an_answer_of_a_node_with_a_schema_is_checked_on_arrival(
    post: Post, project: Project
) -> None:
    register_schema(project, "chat", {"title": "Plan", **STEPS}, "3")
    secret, _ = make("sk-ant-api03-{alnum:93}AA", Random(7))
    answer = post(traces(span(output(f'{{"plan": 1,\n "key": "{secret}"}}'))))
    assert answer.content == b""
    event = Event.objects.get()
    assert event.name == "graph.chat.parse_invalid"
    assert event.parse_error_type == "schema_invalid"
    assert (event.schema, event.schema_version) == ("Plan", "3")
    payload = EventPayload.objects.get()
    (error,) = payload.validation_errors
    assert (error["path"], error["code"]) == ("/steps", "missing")
    assert (error["line"], error["column"]) == (1, 1)
    assert payload.raw_output_preview is not None
    assert secret[:20] not in payload.raw_output_preview
    assert "[REDACTED:" in payload.raw_output_preview


def test_a_right_answer_under_a_schema_is_a_success_with_its_repairs(
    post: Post, project: Project
) -> None:
    register_schema(project, "chat", STEPS, "3")
    post(traces(span(output('```json\n{"steps": [1,]}\n```'))))
    event = Event.objects.get()
    assert (event.kind, event.schema_version) == ("succeeded", "3")
    payload = EventPayload.objects.get()
    assert {repair["kind"] for repair in payload.repairs} == {"fence", "trailing_comma"}
    assert payload.raw_output_preview is None


def test_json_that_was_asked_for_is_parsed_without_a_schema(post: Post) -> None:
    asked = {"gen_ai.output.type": "json", **output('{"steps": [', "length")}
    post(traces(span(asked)))
    event = Event.objects.get()
    assert (event.parse_error_type, event.schema_version) == ("truncated", None)


def test_without_a_schema_an_answer_is_not_looked_at_nor_kept(post: Post) -> None:
    post(traces(span(output("no JSON at all"))))
    assert (Event.objects.get().kind, Event.objects.get().unchecked) == ("succeeded", "no_schema")
    assert not EventPayload.objects.exists()


def test_an_answer_that_takes_too_long_is_stored_unchecked_and_said(
    post: Post, project: Project
) -> None:
    register_schema(project, "chat", {"items": {"type": "integer"}}, "1")
    text = json.dumps([1] * 160_000)
    answer = post(traces(span(output(text))))
    read = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert read.rejected_spans == 0
    assert "1 answer of node chat was not checked" in read.error_message
    event = Event.objects.get()
    assert (event.kind, event.unchecked, event.schema_version) == ("succeeded", "over_budget", None)


def choice(text: str, **changes: Any) -> Any:
    body = {"index": 0, "finish_reason": "stop", "message": {"content": text}}
    return log_record("gen_ai.choice", {"gen_ai.system": "openai"}, body, **changes)


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_an_answer_told_by_a_log_record_is_judged_and_waits_for_its_span(
    post: Post, project: Project, kind: str
) -> None:
    register_schema(project, "chat", STEPS, "3")
    for _ in range(2):
        assert post(logs(choice("{}")), kind, "/v1/logs").status_code == 200
    assert not Event.objects.exists()
    post(traces(span()))
    event = Event.objects.get()
    assert event.parse_error_type == "schema_invalid"
    # What the span knows and the log record does not.
    assert (event.model, event.latency_ms) == ("claude-haiku-4", 1840)
    # Log records that come once more find that their span has taken what they told.
    post(logs(choice("{}")), kind, "/v1/logs")
    settle_later()
    assert Event.objects.count() == 1


def settle_later() -> int:
    past = clock.now() - 2 * PATIENCE
    SpanVerdict.objects.update(received_at=past)
    return settle_verdicts()


def test_a_verdict_whose_span_never_comes_is_an_event_by_itself(
    post: Post, project: Project
) -> None:
    register_schema(project, "chat", STEPS, "3")
    post(logs(choice("{}")), path="/v1/logs")
    assert settle_verdicts() == 0
    assert settle_later() == 1
    event = Event.objects.get()
    assert (event.kind, event.provider, event.model) == ("parse_invalid", "openai", None)
    assert not SpanVerdict.objects.exists()
    post(logs(choice("{}")), path="/v1/logs")
    settle_later()
    assert Event.objects.count() == 1


def test_a_right_answer_told_by_a_log_record_is_left_to_its_span(
    post: Post, project: Project
) -> None:
    register_schema(project, "chat", STEPS, "3")
    answer = post(logs(choice('{"steps": []}')), path="/v1/logs")
    assert answer.content == b""
    settle_later()
    assert not Event.objects.exists()


def test_calls_without_the_answer_that_has_a_schema_are_said(post: Post, project: Project) -> None:
    assert post(traces(span())).content == b""
    register_schema(project, "chat", STEPS, "3")
    told = partial(post(traces(span(span_id="ab" * 8))))
    assert told.rejected_spans == 0
    assert "the telemetry has no text of the answer" in told.error_message
    assert "SPAN_ONLY" in told.error_message
    # One that failed, or tells its answer, lacks nothing.
    failed = span({"error.type": "timeout"}, span_id="ac" * 8)
    assert post(traces(failed, span(output('{"steps": []}'), span_id="ad" * 8))).content == b""
    reasons = Event.objects.filter(kind="succeeded").values_list("unchecked", flat=True)
    assert sorted(reasons, key=str) == [None, "no_answer", "no_schema"]
    assert counts_of(project).unchecked == 2


def test_where_log_records_tell_answers_spans_lack_none(post: Post, project: Project) -> None:
    register_schema(project, "chat", STEPS, "3")
    post(logs(choice('{"steps": []}')), path="/v1/logs")
    assert post(traces(span())).content == b""


def test_what_names_a_model_and_is_no_known_call_is_said(post: Post, project: Project) -> None:
    known = span({"gen_ai.operation.name": "embeddings"}, span_id="ab" * 8)
    strange = span(span_id="ac" * 8)
    del strange.attributes[:]
    told_of_it = {"gen_ai.operation.name": "respond", "gen_ai.request.model": "m"}
    strange.attributes.extend(key_values(told_of_it))
    told = partial(post(traces(known, strange)))
    assert "1 spans name a model" in told.error_message
    assert counts_of(project).not_understood == 1


def test_grpc_is_refused_with_what_to_set() -> None:
    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    answer = Client().post(f"/{service}/Export", b"", content_type="application/grpc")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/grpc")
    assert answer["grpc-status"] == "12"
    assert "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in answer["grpc-message"]


def test_metrics_are_refused_with_what_to_set(post: Post) -> None:
    answer = post(b"\n\0", PROTOBUF, "/v1/metrics")
    assert (answer.status_code, answer["Content-Type"]) == (404, PROTOBUF)
    code, message = status_of(answer)
    assert (code, "OTEL_METRICS_EXPORTER=none" in message) == (5, True)


@pytest.mark.parametrize("path", ["/v1/traces", "/api/v1/events"])
def test_a_body_that_is_no_text_in_utf_8_is_refused_with_what_it_is(post: Post, path: str) -> None:
    packed = post(gzip.compress(b"{}"), JSON, path)
    assert (packed.status_code, b"Content-Encoding: gzip" in packed.content) == (400, True)
    wide = post("{}".encode("utf-16"), JSON, path)
    assert (wide.status_code, b"UTF-16" in wide.content) == (400, True)


def partial(answer: Any) -> Any:
    return ExportTraceServiceResponse.FromString(answer.content).partial_success


def counts_of(project: Project) -> ItemCounts:
    (counts,) = tallies_of(project.pk, "api_key", clock.now() - timedelta(hours=1)).values()
    return counts


def test_log_records_tell_by_attributes_of_ours_what_no_span_does(post: Post) -> None:
    told = {
        "failsoft.kind": "degraded",
        "failsoft.node": "planner",
        "failsoft.reason": "planner_parse_failed",
        "failsoft.attempts": 2,
    }
    post(logs(log_record("planning.ended", told)), path="/v1/logs")
    event = Event.objects.get()
    assert event.name == "graph.planner.degraded"
    assert (event.attempts, event.status) == (2, "failed")


def test_a_refused_log_record_is_said(post: Post) -> None:
    bad = log_record("x", {"failsoft.kind": "exploded"})
    answer = post(logs(bad), path="/v1/logs")
    read = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert read.rejected_log_records == 1
    answer = post(logs(bad), JSON, "/v1/logs")
    assert answer.json()["partialSuccess"]["rejectedLogRecords"] == "1"


@pytest.mark.parametrize(
    ("body", "kind", "headers", "status", "code"),
    [
        (b"\xff\xff", PROTOBUF, {}, 400, 3),
        (b"{", JSON, {}, 400, 3),
        (b"[]", JSON, {}, 400, 3),
        (b"no gzip", PROTOBUF, {"Content-Encoding": "gzip"}, 400, 3),
        (b"x", PROTOBUF, {"Content-Encoding": "br"}, 415, 3),
        (b"x", "text/plain", {}, 415, 3),
        (b"\0" * ((4 << 20) + 1), PROTOBUF, {}, 413, 3),
        (b"x", PROTOBUF, {"Authorization": "Bearer nobody"}, 401, 16),
        (b"x", JSON, {"Authorization": "Bearer nobody"}, 401, 16),
    ],
)
def test_a_refused_request_is_answered_with_a_status_in_its_encoding(
    post: Post, body: bytes, kind: str, headers: dict[str, str], status: int, code: int
) -> None:
    answer = post(body, kind, **headers)
    assert answer.status_code == status
    if kind == PROTOBUF:
        assert answer["Content-Type"] == PROTOBUF
        told, message = status_of(answer)
    else:
        told, message = answer.json()["code"], answer.json()["message"]
    assert told == code
    assert message
    assert not Event.objects.exists()


def test_a_key_that_only_reads_is_forbidden(project: Project) -> None:
    key = issue_key(project, "reader", [Scope.READ]).text
    answer = Client().post(
        "/v1/traces", b"x", content_type=PROTOBUF, headers={"Authorization": f"Bearer {key}"}
    )
    assert answer.status_code == 403
    assert status_of(answer)[0] == 7


def test_other_methods_are_not_allowed(post: Post) -> None:
    assert Client().get("/v1/traces").status_code in (401, 405)


def test_a_database_that_is_away_asks_to_come_again(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(otlp.TracesView, "receive", fail)
    answer = post(traces(span()))
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert status_of(answer)[0] == 14


def test_a_database_that_is_away_when_the_key_is_looked_up_asks_to_come_again(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OperationalError("gone")

    forget_all()
    monkeypatch.setattr(authentication, "DatabaseNow", fail)
    answer = post(traces(span()))
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert status_of(answer)[0] == 14


def test_a_used_up_quota_asks_to_come_again_too(post: Post, project: Project) -> None:
    Quota.objects.create(project=project, key_events_per_second=1, key_burst_events=2)
    assert post(traces(span())).status_code == 200
    many = [span(span_id=f"{number:016x}") for number in range(1, 9)]
    answer = post(traces(*many))
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) >= 1
    assert status_of(answer)[0] == 14
    assert Event.objects.count() == 1


def test_what_was_refused_is_in_the_inbox_without_any_answer(post: Post, project: Project) -> None:
    bad = {"failsoft.output_mode": "fax", **output("what the model said")}
    post(traces(span(bad)))
    post(b"{", JSON)
    whole, item = rejects_of(project.pk)
    assert (whole.http_status, whole.endpoint) == (400, "/v1/traces")
    assert "not JSON" in whole.message
    assert (item.code, item.item_index) == ("otlp_item", 0)
    assert item.source == "support-bot"
    assert "fax" in item.head
    assert "what the model said" not in item.head


def test_the_client_may_accept_whatever_it_likes(post: Post) -> None:
    assert post(traces(span()), Accept="application/x-protobuf").status_code == 200
    assert post(traces(span()), Accept="text/html").status_code == 200


def test_projects_do_not_share_ids_nor_schemas(post: Post, project: Project) -> None:
    other = Project.objects.create(slug="o", name="O")
    register_schema(other, "chat", STEPS, "1")
    post(traces(span(output("{}"))))
    assert Event.objects.get().kind == "succeeded"
