"""One call of a model is one event, however many spans and log records tell it."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from time import thread_time
from typing import Any

import pytest
from django.db import connection
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest import joined_calls
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.joined_calls import KEEP
from diagnostics.ingest.log_answers import PATIENCE, settle_verdicts
from diagnostics.ingest.models import SpanCall, SpanVerdict
from diagnostics.ingest.otlp import json_encoding, protobuf
from diagnostics.ingest.otlp.telemetry import UnreadItem
from diagnostics.ingest.receiving import Receipt, receive_logs, receive_spans
from diagnostics.ingest.span_runs import settle_runs
from diagnostics.store.aggregation import fold
from diagnostics.store.models import Event, EventPayload
from diagnostics.store.sql import fetch
from failsoft.json_values import JSON
from tests.diagnostics import otlp_bodies as bodies
from tests.diagnostics.otlp_bodies import MILLISECOND_NS, START_NS

pytestmark = pytest.mark.django_db
FRAMEWORK, SDK = "openinference.instrumentation.anthropic", "com.anthropic.sdk.python"
OUTER, INNER, TRACE = "aa" * 8, "bb" * 8, bodies.TRACE
STEPS: dict[str, Any] = {
    "title": "Plan",
    "type": "object",
    "required": ["steps"],
    "properties": {"steps": {"type": "array"}},
}
Send = Callable[..., Receipt]


@pytest.fixture
def project() -> Project:
    project = Project.objects.create(slug="p", name="P")
    register_schema(project, "chat", STEPS, "3")
    return project


@pytest.fixture
def send(project: Project) -> Send:
    issue_key(project, "tests", [Scope.INGEST])
    key = ApiKey.objects.get()

    def post(scope: str, *spans: Span, **resource: str) -> Receipt:
        body = bodies.traces(*spans, scope=scope, resource=resource)
        return receive_spans(key.project_id, protobuf.read_spans(body.SerializeToString()))

    return post


@pytest.fixture
def tell(project: Project) -> Callable[..., Receipt]:
    """Post a log record that tells the answer of the inner span."""
    issue_key(project, "logs", [Scope.INGEST])
    key = ApiKey.objects.get(name="logs")

    def post(text: str, span_id: str = INNER, **told: str) -> Receipt:
        body = {"index": 0, "finish_reason": "stop", "message": {"content": text}}
        record = bodies.log_record("gen_ai.choice", told, body, span_id=span_id)
        return receive_logs(
            key.project_id, protobuf.read_logs(bodies.logs(record).SerializeToString())
        )

    return post


def answered(text: str, **more: Any) -> Span:
    part = {"type": "text", "content": text}
    told = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}])}
    return bodies.span({**told, **more.pop("attributes", {})}, span_id=OUTER, **more)


def thin(**more: Any) -> Span:
    """The span of an SDK: numbers, and nothing of the answer."""
    fields = {"span_id": INNER, "parent_span_id": bytes.fromhex(OUTER), **more}
    return bodies.span(fields.pop("attributes", {}), **fields)


@pytest.mark.parametrize("is_sdk_first", [True, False])
def test_two_instrumentations_that_tell_one_call_make_one_event(
    send: Send, is_sdk_first: bool
) -> None:
    told = [(SDK, thin()), (FRAMEWORK, answered("{}"))]
    for scope, span in told if is_sdk_first else told[::-1]:
        send(scope, span)
    event = Event.objects.get()
    assert (event.kind, event.parse_error_type) == ("parse_invalid", "schema_invalid")
    assert EventPayload.objects.get().raw_output_preview == "{}"


@pytest.mark.django_db(transaction=True)
def test_two_instrumentations_that_tell_one_call_at_once_make_one_event(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Barrier(2)

    def keep_together(*given: Any) -> None:
        # Each goes on when the other has read what is stored, or does not come.
        with suppress(BrokenBarrierError):
            both.wait(1)
        keep(*given)

    def post(scope: str, span: Span) -> None:
        try:
            send(scope, span)
        finally:
            connection.close()

    keep = joined_calls._keep
    monkeypatch.setattr(joined_calls, "_keep", keep_together)
    with ThreadPoolExecutor() as pool:
        told = [(SDK, thin()), (FRAMEWORK, answered("{}"))]
        for done in [pool.submit(post, *one) for one in told]:
            done.result()
    assert Event.objects.count() == 1


def test_an_event_that_was_corrected_is_counted_once(send: Send) -> None:
    send(SDK, thin())
    fold()
    send(FRAMEWORK, answered("{}"))
    fold()
    counts = fetch(
        "SELECT sum(events), sum(succeeded), sum(invalid), sum(runs) FROM diagnostics_rollup_hour"
    )
    assert counts == [(1, None, 1, 0)]


def test_what_is_exported_again_stays_one_event(send: Send) -> None:
    for _ in range(2):
        send(SDK, thin())
        send(FRAMEWORK, answered("{}"))
        receipt = send(SDK, thin())
        assert receipt.accepted == 0
    assert Event.objects.get().kind == "parse_invalid"


def test_spans_of_one_batch_complete_each_other(project: Project, send: Send) -> None:
    key = ApiKey.objects.get()
    first = bodies.traces(thin(attributes={"gen_ai.agent.name": "planner"}), scope=SDK)
    other = bodies.traces(answered('{"steps": []}'), scope=FRAMEWORK)
    first.resource_spans.extend(other.resource_spans)
    receipt = receive_spans(key.project_id, protobuf.read_spans(first.SerializeToString()))
    assert (receipt.accepted, receipt.joined) == (1, 1)
    event = Event.objects.get()
    assert (event.node, event.kind, event.model) == ("planner", "succeeded", "claude-haiku-4")


def test_traces_may_differ_where_the_response_is_the_same(send: Send) -> None:
    same = {"gen_ai.response.id": "msg-1"}
    send(SDK, thin(attributes=same, trace_id="cd" * 16))
    send(FRAMEWORK, answered("{}", attributes=same))
    assert Event.objects.get().kind == "parse_invalid"


@pytest.mark.parametrize(
    ("scope", "changes"),
    [
        # A provider that calls every response the same: another time is another call.
        (SDK, {"attributes": {"gen_ai.response.id": "msg-1"}, "start_ns": START_NS + 10**10}),
        # Two responses at the same time.
        (SDK, {"attributes": {"gen_ai.response.id": "msg-2"}}),
        # An instrumentation tells a call once, unless one span lies in the other.
        (FRAMEWORK, {"attributes": {"gen_ai.response.id": "msg-1"}, "parent_span_id": b""}),
        # A call inside another one that ends long before it.
        (FRAMEWORK, {"end_time_unix_nano": START_NS + 20 * MILLISECOND_NS}),
    ],
)
def test_other_calls_are_other_events(send: Send, scope: str, changes: dict[str, Any]) -> None:
    send(FRAMEWORK, answered('{"steps": []}', attributes={"gen_ai.response.id": "msg-1"}))
    send(scope, thin(**changes))
    assert Event.objects.count() == 2


@pytest.mark.parametrize("is_inner_first", [True, False])
def test_methods_that_call_those_of_their_base_tell_one_call(
    send: Send, is_inner_first: bool
) -> None:
    """LlamaIndex's `OpenAILike.chat` calls `OpenAI.chat`, and that another one: a span each."""
    parent = bytes.fromhex(INNER)
    told = [thin(span_id="cc" * 8, parent_span_id=parent), thin(), answered("{}")]
    for span in told if is_inner_first else told[::-1]:
        send(FRAMEWORK, span)
    assert Event.objects.get().kind == "parse_invalid"


def test_a_try_of_the_sdk_that_failed_is_an_event_of_its_own(send: Send) -> None:
    """A framework's span lasts until the last try of the SDK below has ended."""
    second = START_NS + 1500 * MILLISECOND_NS
    failed = {
        "span_id": "cc" * 8,
        "is_error": True,
        "end_time_unix_nano": START_NS + 20 * MILLISECOND_NS,
    }
    good = {"start_ns": second, "end_time_unix_nano": START_NS + 1839 * MILLISECOND_NS}
    named = {"gen_ai.response.id": "msg-2"}
    send(SDK, thin(**failed), thin(attributes=named, **good))
    send(FRAMEWORK, answered("{}", attributes=named))
    settle_runs()
    events = Event.objects.filter(latency_ms__isnull=False).order_by("occurred_at")
    assert list(events.values_list("kind", "cycle", "attempt")) == [
        ("provider_error", 1, 1),
        ("parse_invalid", 1, 2),
    ]


def test_a_log_record_corrects_the_span_that_came_before_it(
    send: Send, tell: Callable[[str], Receipt]
) -> None:
    send(SDK, thin())
    receipt = tell("{}")
    assert (receipt.joined, receipt.waiting) == (1, 0)
    settle_later()
    event = Event.objects.get()
    assert (event.kind, event.model, event.latency_ms) == ("parse_invalid", "claude-haiku-4", 1840)
    assert EventPayload.objects.get().validation_errors[0]["code"] == "missing"
    tell("{}")
    settle_later()
    assert Event.objects.count() == 1


def test_a_span_and_a_log_record_that_both_tell_the_answer_are_one_event(
    send: Send, tell: Callable[[str], Receipt]
) -> None:
    span = answered("{}")
    span.span_id = bytes.fromhex(INNER)
    for order in ((send, tell), (tell, send)):
        for post in order:
            post("{}") if post is tell else send(SDK, span)
        settle_later()
    assert Event.objects.count() == 1


@pytest.mark.parametrize("is_span_first", [True, False])
def test_a_log_record_written_outside_of_its_span_is_about_the_response_that_it_names(
    send: Send, tell: Callable[..., Receipt], is_span_first: bool
) -> None:
    named = {"gen_ai.response.id": "response-1"}

    def post_span() -> None:
        send(SDK, thin(attributes=named))

    def post_record() -> None:
        tell("{}", span_id=OUTER, **named)

    order = (post_span, post_record) if is_span_first else (post_record, post_span)
    for post in order:
        post()
    settle_later()
    event = Event.objects.get()
    assert (event.kind, event.parse_error_type) == ("parse_invalid", "schema_invalid")
    assert (event.model, event.latency_ms) == ("claude-haiku-4", 1840)


def test_log_records_of_one_service_say_nothing_of_the_answers_of_another(
    send: Send, tell: Callable[..., Receipt]
) -> None:
    tell("{}")
    same, other = (thin(trace_id=digit * 32) for digit in "ab")
    send(SDK, same)
    assert Event.objects.get().unchecked is None
    send(SDK, other, **{"service.name": "another-bot"})
    assert Event.objects.get(source="another-bot").unchecked == "no_answer"


def test_a_log_record_of_another_response_is_another_answer(
    send: Send, tell: Callable[..., Receipt]
) -> None:
    send(SDK, thin(attributes={"gen_ai.response.id": "response-1"}))
    tell("{}", span_id=OUTER, **{"gen_ai.response.id": "response-2"})
    settle_later()
    assert Event.objects.count() == 2


def test_repairs_told_by_a_log_record_are_kept(send: Send, tell: Callable[[str], Receipt]) -> None:
    tell('```json\n{"steps": []}\n```')
    send(SDK, thin())
    event = Event.objects.get()
    assert (event.kind, event.model) == ("succeeded", "claude-haiku-4")
    assert [repair["kind"] for repair in EventPayload.objects.get().repairs] == ["fence"]


@pytest.mark.parametrize(
    ("text", "kind"), [("{}", "parse_invalid"), ('{"steps": []}', "succeeded")]
)
def test_a_log_record_that_crossed_its_span_corrects_it_when_it_is_settled(
    send: Send, tell: Callable[[str], Receipt], text: str, kind: str
) -> None:
    tell(text)
    waiting = SpanVerdict.objects.get()
    waiting.delete()
    send(SDK, thin())
    SpanVerdict.objects.bulk_create([waiting])
    assert settle_later() == 1
    event = Event.objects.get()
    assert (event.kind, event.unchecked) == (kind, None)


def test_what_is_known_of_spans_is_kept_for_a_day(send: Send) -> None:
    send(SDK, thin())
    SpanCall.objects.update(received_at=clock.now() - 2 * KEEP)
    settle_verdicts()
    assert not SpanCall.objects.exists()


def test_both_encodings_name_the_instrumentation_and_the_parent() -> None:
    body = bodies.traces(thin(), scope=SDK)
    packed = body.SerializeToString()
    (one,) = protobuf.read_spans(packed)
    document = json.loads(bodies.as_json(body))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["parentSpanId"] = OUTER
    (other,) = json_encoding.read_spans(json.dumps(document).encode())
    assert not isinstance(one, UnreadItem)
    assert not isinstance(other, UnreadItem)
    assert (one.scope, one.parent_id) == (other.scope, other.parent_id) == (SDK, OUTER)


def called(name: str, arguments: object, **more: Any) -> Span:
    part = {"type": "tool_call", "name": name, "arguments": arguments}
    told = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}])}
    return bodies.span({**told, **more})


DEFINITIONS = json.dumps([{"name": "search", "parameters": {"required": ["query"]}}])


@pytest.mark.parametrize(
    ("name", "arguments", "is_defined", "error"),
    [
        # Against the schema that the request told for the tool.
        ("search", {"query": "a"}, True, None),
        ("search", {"q": "a"}, True, "schema_invalid"),
        ("search", "", True, "schema_invalid"),
        # Against that of the node: the tool bears its title, or shares a property.
        ("plan", {}, False, "schema_invalid"),
        ("plan", {"steps": []}, False, None),
        ("answer", {"steps": 1}, False, "schema_invalid"),
        # A tool on the way to the answer; still, arguments are an object.
        ("search", {"query": "a"}, False, None),
        ("search", "no JSON at all", False, "not_json"),
        ("search", '{"query": "a', False, "truncated"),
    ],
)
def test_calls_of_tools_are_checked(
    send: Send, name: str, arguments: object, is_defined: bool, error: str | None
) -> None:
    more = {"gen_ai.tool.definitions": DEFINITIONS} if is_defined else {}
    send(SDK, called(name, arguments, **more))
    assert Event.objects.get().parse_error_type == error
    previews = EventPayload.objects.values_list("raw_output_preview", flat=True)
    assert [preview is not None for preview in previews] == ([] if error is None else [True])


def test_an_answer_is_known_by_a_property_with_a_slash_in_its_name(
    project: Project, send: Send
) -> None:
    schema: JSON = {"required": ["steps/~all"], "properties": {"steps/~all": {"type": "array"}}}
    register_schema(project, "chat", schema, "4")
    send(SDK, called("answer", {"steps/~all": 1}))
    assert Event.objects.get().parse_error_type == "schema_invalid"


def test_a_schema_registered_under_the_name_of_a_tool_checks_its_calls(
    project: Project, send: Send
) -> None:
    register_schema(project, "search", {"required": ["query"]}, "7")
    send(SDK, called("search", {}))
    event = Event.objects.get()
    assert (event.parse_error_type, event.schema_version) == ("schema_invalid", "7")


def test_of_several_calls_the_wrong_one_is_shown(send: Send) -> None:
    parts = [
        {"type": "tool_call", "name": "search", "arguments": arguments}
        for arguments in ({"query": "a"}, {"q": "b"})
    ]
    told = {
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
        "gen_ai.tool.definitions": DEFINITIONS,
    }
    send(SDK, bodies.span(told))
    assert Event.objects.get().schema == "search"
    assert EventPayload.objects.get().raw_output_preview == '{"q":"b"}'


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ({"gen_ai.response.finish_reasons": ["length"]}, "truncated"),
        ({"gen_ai.response.finish_reasons": ["content_filter"]}, "refusal"),
        ({"anthropic.message.stop_reason": "refusal", "gen_ai.response.finish_reasons": []},
         "refusal"),
        ({"gen_ai.response.finish_reasons": ["stop"]}, None),
    ],
)  # fmt: skip
def test_a_reason_to_stop_is_a_failure_without_any_answer(
    send: Send, attributes: dict[str, Any], error: str | None
) -> None:
    send(SDK, bodies.span({"gen_ai.agent.name": "free", **attributes}))
    assert Event.objects.get().parse_error_type == error


def test_calls_of_tools_that_are_left_out_are_no_empty_answer(send: Send) -> None:
    message = {"role": "assistant", "parts": []}
    told = {
        "gen_ai.output.messages": json.dumps([message]),
        "gen_ai.response.finish_reasons": ["tool_calls"],
    }
    send(SDK, bodies.span(told))
    assert (Event.objects.get().kind, Event.objects.get().unchecked) == ("succeeded", "no_answer")


def test_a_schema_that_the_request_tells_is_enough(send: Send) -> None:
    wanted = {"output_mode": "native", "output_object": {"json_schema": STEPS}}
    told = {"gen_ai.agent.name": "free", "model_request_parameters": json.dumps(wanted)}
    send(SDK, answered("{}", attributes=told))
    event = Event.objects.get()
    assert (event.node, event.parse_error_type, event.schema) == ("free", "schema_invalid", "Plan")


def settle_later() -> int:
    SpanVerdict.objects.update(received_at=clock.now() - 2 * PATIENCE)
    return settle_verdicts()


@pytest.mark.slow
def test_thousands_of_spans_at_one_moment_are_joined_in_time(project: Project, send: Send) -> None:
    spans = [thin(span_id=f"{number:016x}") for number in range(1, 3001)]
    begin = thread_time()
    assert send(SDK, *spans).accepted == 3000
    assert send(FRAMEWORK, answered("{}")).joined == 1
    assert thread_time() - begin < 20


def failed(trace: str, **more: Any) -> Span:
    changes = {"span_id": INNER, "is_error": True, **more}
    return bodies.span(changes.pop("attributes", {}), trace_id=trace, **changes)


@pytest.mark.parametrize("is_one_request", [True, False])
def test_a_failure_told_in_two_traces_is_one(
    project: Project, send: Send, is_one_request: bool
) -> None:
    later = START_NS + 20 * MILLISECOND_NS
    told = [
        (FRAMEWORK, failed("ab" * 16)),
        (SDK, failed("cd" * 16, attributes={"gen_ai.provider.name": "x"}, start_ns=later)),
    ]
    if is_one_request:
        request = bodies.traces(told[0][1], scope=FRAMEWORK)
        request.MergeFrom(bodies.traces(told[1][1], scope=SDK))
        receive_spans(
            ApiKey.objects.get().project_id, protobuf.read_spans(request.SerializeToString())
        )
    else:
        for scope, span in told:
            send(scope, span)
    assert Event.objects.get().kind == "provider_error"


@pytest.mark.parametrize(
    ("scope", "more"),
    [
        # Of one instrumentation, another error, another model, another time, and a success.
        (FRAMEWORK, {}),
        (SDK, {"attributes": {"error.type": "429"}}),
        (SDK, {"attributes": {"gen_ai.request.model": "other"}}),
        (SDK, {"start_ns": START_NS + 900 * MILLISECOND_NS}),
        (SDK, {"is_error": False}),
    ],
)
def test_failures_in_two_traces_that_differ_are_two(
    send: Send, scope: str, more: dict[str, Any]
) -> None:
    send(FRAMEWORK, failed("ab" * 16))
    send(scope, failed("cd" * 16, **more))
    assert Event.objects.count() == 2


def nameless(named: dict[str, Any] | None = None, **more: Any) -> Span:
    told = {"gen_ai.request.model": "", **(named or {})}
    return bodies.span(told, span_id=INNER, is_error=True, start_ns=START_NS - 10**10, **more)


@pytest.mark.parametrize("is_one_request", [True, False])
def test_a_failure_without_a_model_has_that_of_its_run(send: Send, is_one_request: bool) -> None:
    good = answered('{"steps": []}')
    if is_one_request:
        send(SDK, good, nameless())
    else:
        send(SDK, good)
        send(SDK, nameless())
    assert Event.objects.get(kind="provider_error").model == "claude-haiku-4"


@pytest.mark.parametrize("is_one_request", [True, False])
@pytest.mark.parametrize("trace_id", [TRACE, "cd" * 16])
def test_a_failure_without_a_provider_has_that_of_its_model(
    send: Send, is_one_request: bool, trace_id: str
) -> None:
    """OpenInference's instrumentation of Mistral's SDK reads the provider from the answer."""
    told = {"gen_ai.request.model": "claude-haiku-4", "gen_ai.provider.name": ""}
    failed = nameless(told, trace_id=trace_id)
    other = bodies.span(
        {"gen_ai.request.model": "other", "gen_ai.provider.name": "openai"},
        span_id="cc" * 8,
        start_ns=START_NS + 10**10,
    )
    batch = [answered('{"steps": []}'), other, failed]
    for spans in [batch] if is_one_request else [[span] for span in batch]:
        send(SDK, *spans)
        fold()
    event = Event.objects.get(kind="provider_error")
    assert (event.provider, event.model) == ("anthropic", "claude-haiku-4")


def test_a_failure_among_two_models_has_none(send: Send) -> None:
    other = bodies.span(
        {"gen_ai.request.model": "other"}, span_id="cc" * 8, start_ns=START_NS + 10**10
    )
    send(SDK, answered('{"steps": []}'), other, nameless())
    assert Event.objects.get(kind="provider_error").model is None


def tries(*, ends_well: bool, wait_ms: int) -> list[Span]:
    """Spans of LiveKit: one around all tries of a request, and one each of those that failed."""
    begin, duration = START_NS, 300 * MILLISECOND_NS
    spans = []
    for index in range(1 if ends_well else 2):
        spans.append(
            thin(
                span_id=f"{index + 1:02}" * 8,
                is_error=True,
                start_ns=begin,
                end_time_unix_nano=begin + duration,
            )
        )
        begin += duration + wait_ms * MILLISECOND_NS
    if ends_well:
        around = answered('{"steps": []}', end_time_unix_nano=begin + duration)
    else:
        end = begin - wait_ms * MILLISECOND_NS
        around = bodies.span(span_id=OUTER, is_error=True, end_time_unix_nano=end)
    return [*spans, around]


@pytest.mark.parametrize("is_one_request", [True, False])
@pytest.mark.parametrize("wait_ms", [700, 20])
def test_a_call_around_its_failed_tries_is_the_one_after_them(
    send: Send, is_one_request: bool, wait_ms: int
) -> None:
    spans = tries(ends_well=True, wait_ms=wait_ms)
    for batch in [spans] if is_one_request else [[span] for span in spans]:
        send(FRAMEWORK, *batch)
    settle_runs()
    events = Event.objects.order_by("occurred_at")
    assert list(events.values_list("kind", "attempt", "latency_ms")) == [
        ("provider_error", 1, 300),
        ("succeeded", 2, 300 + wait_ms),
    ]


def test_a_call_around_its_failed_tries_that_is_sent_again_is_a_duplicate(send: Send) -> None:
    spans = tries(ends_well=True, wait_ms=700)
    send(FRAMEWORK, *spans)
    again = send(FRAMEWORK, *spans)
    assert (again.accepted, again.duplicates, again.known) == (0, 2, 0)


@pytest.mark.parametrize("is_one_request", [True, False])
def test_a_call_around_tries_that_all_failed_is_the_last_of_them(
    send: Send, is_one_request: bool
) -> None:
    spans = tries(ends_well=False, wait_ms=700)
    for batch in [spans[::-1]] if is_one_request else [[span] for span in spans]:
        send(FRAMEWORK, *batch)
    kinds = Event.objects.order_by("occurred_at").values_list("kind", "latency_ms")
    assert list(kinds) == [("provider_error", 300)] * 2


@pytest.mark.parametrize("is_error", [True, False])
def test_a_call_is_that_of_its_framework_that_prepared_it_for_long(
    send: Send, is_error: bool
) -> None:
    """AutoGen makes its client within the span of its first call."""
    late = {"start_ns": START_NS + 900 * MILLISECOND_NS, "is_error": is_error}
    send(SDK, thin(**late, end_time_unix_nano=START_NS + 1839 * MILLISECOND_NS))
    around = bodies.span(span_id=OUTER, is_error=True) if is_error else answered("{}")
    send(FRAMEWORK, around)
    kind = "provider_error" if is_error else "parse_invalid"
    assert Event.objects.get().kind == kind
