"""Which spans and log records become events, of what kind, and under which id."""

import json
from dataclasses import replace
from typing import Any

import pytest

from diagnostics.ingest.otlp import protobuf
from diagnostics.ingest.otlp.answers import Answer
from diagnostics.ingest.otlp.attributes import count_unknown
from diagnostics.ingest.otlp.drafts import Draft, make_event
from diagnostics.ingest.otlp.mapping import ANSWER, NoEventError, draft_log, draft_span, is_strange
from diagnostics.ingest.otlp.openinference import LLAMA_INDEX
from diagnostics.ingest.otlp.telemetry import LogRecord, Span, UnreadItem
from diagnostics.ingest.schemas import SchemaVerdict
from failsoft.events import EventKind, ParseErrorType, PostedEvent
from tests.diagnostics import otlp_bodies as bodies


def read_span(*arguments: Any, resource: Any = None, **changes: Any) -> Span:
    request = bodies.traces(bodies.span(*arguments, **changes), resource=resource)
    (found,) = protobuf.read_spans(request.SerializeToString())
    assert not isinstance(found, UnreadItem)
    return found


def read_log(*arguments: Any, **changes: Any) -> LogRecord:
    request = bodies.logs(bodies.log_record(*arguments, **changes))
    (found,) = protobuf.read_logs(request.SerializeToString())
    assert not isinstance(found, UnreadItem)
    return found


def events_of(span: Span, verdict: SchemaVerdict | None = None) -> list[PostedEvent]:
    return [make_event(draft, 1, verdict) for draft in draft_span(span)]


def event_of(*arguments: Any, **changes: Any) -> PostedEvent:
    (event,) = events_of(read_span(*arguments, **changes))
    return event


def only(attributes: dict[str, Any], **changes: Any) -> list[Draft]:
    """Draft a span that has these attributes and no others."""
    packed = bodies.span(**changes)
    del packed.attributes[:]
    packed.attributes.extend(bodies.key_values(attributes))
    (found,) = protobuf.read_spans(bodies.traces(packed).SerializeToString())
    assert not isinstance(found, UnreadItem)
    return draft_span(found)


@pytest.mark.parametrize(
    ("attributes", "is_call"),
    [
        ({"gen_ai.operation.name": "chat"}, True),
        ({"gen_ai.operation.name": "text_completion"}, True),
        ({"gen_ai.operation.name": "generate_content"}, True),
        ({"gen_ai.operation.name": "invoke_agent"}, False),
        ({"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e"}, False),
        ({"gen_ai.operation.name": "execute_tool"}, False),
        # Before operations had a name.
        ({"gen_ai.request.model": "m", "llm.request.type": "chat"}, True),
        ({"gen_ai.request.model": "m", "llm.request.type": "embedding"}, False),
        ({"gen_ai.request.model": "m", "gen_ai.usage.output_tokens": 1}, True),
        ({"gen_ai.request.model": "m"}, False),
        # OpenInference.
        ({"openinference.span.kind": "LLM"}, True),
        ({"openinference.span.kind": "CHAIN", "llm.model_name": "m"}, False),
        ({"llm.model_name": "m"}, True),
        # Both: the operation decides when it is told.
        ({"gen_ai.operation.name": "invoke_agent", "openinference.span.kind": "LLM"}, False),
        ({"http.request.method": "GET"}, False),
        ({}, False),
        # Whatever the agent calls an event is one.
        ({"failsoft.kind": "succeeded"}, True),
    ],
)
def test_only_calls_of_models_are_events(attributes: dict[str, Any], is_call: bool) -> None:
    assert bool(only(attributes)) is is_call


@pytest.mark.parametrize(
    ("name", "is_call"),
    [
        ("OpenAI.chat", True),
        ("Ollama.astream_chat", True),
        ("OpenAI.complete", True),
        ("OpenAI._prepare_chat_with_tools", False),
        ("OpenAI.predict_and_call", False),
        ("OpenAI.structured_predict", False),
        ("StructuredLLM.chat", False),
    ],
)
def test_methods_of_llama_index_around_a_call_are_no_calls(name: str, is_call: bool) -> None:
    told = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
    span = replace(read_span(name=name), attributes=told, scope=LLAMA_INDEX)
    assert bool(draft_span(span)) is is_call
    assert not is_strange(span) or is_call
    assert draft_span(replace(span, scope="openinference.instrumentation.openai"))


LATE = ("exception", {"exception.type": "httpx.ReadTimeout"})


@pytest.mark.parametrize(
    ("attributes", "changes", "kind", "error_type"),
    [
        ({}, {}, EventKind.SUCCEEDED, None),
        ({"error.type": "timeout"}, {}, EventKind.PROVIDER_ERROR, "timeout"),
        ({"error.type": "openai.APITimeoutError"}, {}, EventKind.PROVIDER_ERROR, "timeout"),
        ({"error.type": "429"}, {}, EventKind.PROVIDER_ERROR, "rate_limited"),
        ({"error.type": "RateLimitError"}, {}, EventKind.PROVIDER_ERROR, "rate_limited"),
        ({"error.type": "500"}, {}, EventKind.PROVIDER_ERROR, "provider_error"),
        ({"error.type": "CircuitBreakerError"}, {}, EventKind.PROVIDER_ERROR, "circuit_open"),
        ({}, {"is_error": True}, EventKind.PROVIDER_ERROR, "provider_error"),
        # A status of HTTP where there is nothing better.
        (
            {"error.type": "_OTHER", "http.response.status_code": 504},
            {"is_error": True},
            EventKind.PROVIDER_ERROR,
            "timeout",
        ),
        # The exception that ended the span.
        (
            {},
            {"is_error": True, "events": [("exception", {"exception.type": "httpx.ReadTimeout"})]},
            EventKind.PROVIDER_ERROR,
            "timeout",
        ),
        # Raised by the client once the model had answered.
        ({"error.type": "json.JSONDecodeError"}, {}, EventKind.PARSE_INVALID, "not_json"),
        (
            {"error.type": "openai.LengthFinishReasonError"},
            {},
            EventKind.PARSE_INVALID,
            "truncated",
        ),
        # What the agent says comes before everything else.
        (
            {"failsoft.parse_error_type": "schema_invalid", "error.type": "timeout"},
            {},
            EventKind.PARSE_INVALID,
            "schema_invalid",
        ),
        ({"failsoft.kind": "succeeded", "error.type": "timeout"}, {}, EventKind.SUCCEEDED, None),
    ],
)
def test_the_kind_is_what_ended_the_call(
    attributes: dict[str, Any], changes: dict[str, Any], kind: EventKind, error_type: str | None
) -> None:
    event = event_of(attributes, **changes)
    assert event.kind is kind
    told = event.parse_error_type or event.attributes.get("call_error_type")
    assert told == error_type


@pytest.mark.parametrize(
    ("answered", "is_failed"),
    [
        ({}, True),
        ({"langsmith.span.kind": "llm", "gen_ai.completion": '{"output": null}'}, True),
        ({"gen_ai.completion": "a"}, False),
        ({"gen_ai.usage.output_tokens": 9}, False),
        ({"gen_ai.response.finish_reasons": ["stop"]}, False),
    ],
)
def test_an_exception_ended_a_call_without_an_answer_whatever_its_status_is(
    answered: dict[str, Any], is_failed: bool
) -> None:
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **answered}
    (draft,) = only(told, events=[LATE])
    assert draft.is_error is is_failed
    assert draft.error.kind == "timeout"


def test_the_name_of_an_error_is_kept_beside_its_kind() -> None:
    assert event_of({"error.type": "APIError"}).original_error_type == "APIError"


def test_an_error_type_outside_the_list_is_other() -> None:
    event = event_of({"failsoft.parse_error_type": "yaml_found"})
    assert event.parse_error_type is ParseErrorType.OTHER
    assert event.original_error_type == "yaml_found"


def test_the_errors_that_an_agent_tells_of_an_invalid_answer_are_kept() -> None:
    told = json.dumps([{"path": "/days", "message": "no such city", "line": 2, "column": 10}])
    errors = {"failsoft.validation_errors": told}
    event = event_of({"failsoft.parse_error_type": "schema_invalid", **errors})
    [error] = event.validation_errors
    assert (error.path, error.message, error.line) == ("/days", "no such city", 2)
    assert event_of(errors).kind is EventKind.SUCCEEDED
    assert event_of({"failsoft.validation_errors": "no JSON"}).kind is EventKind.SUCCEEDED


def test_what_the_agent_tells_comes_before_what_the_conventions_tell() -> None:
    event = event_of(
        {
            "gen_ai.agent.name": "Router",
            "failsoft.node": "Next Step!",
            "failsoft.attempt": 2,
            "failsoft.cycle": 3,
            "failsoft.correlation_id": "run-8842",
            "failsoft.prompt_version": "planner-v5",
            "failsoft.schema": "Plan",
            "failsoft.environment": "staging",
            "failsoft.source": "worker-7",
        }
    )
    assert event.name == "graph.next_step.succeeded"
    assert (event.attempt, event.cycle) == (2, 3)
    assert event.correlation_id == "run-8842"
    assert (event.prompt_version, event.schema_name) == ("planner-v5", "Plan")
    assert (event.environment, event.source) == ("staging", "worker-7")


def test_the_resource_speaks_where_the_span_is_silent() -> None:
    told = {"failsoft.node": "planner", "failsoft.attempt": "2"}
    event = event_of({"failsoft.attempt": 1}, resource=told)
    assert (event.node, event.attempt) == ("planner", 1)
    assert event_of({}, resource=told).attempt == 2


def test_without_a_name_a_node_is_the_agent_or_chat() -> None:
    assert event_of({"gen_ai.agent.name": "Math Tutor"}).node == "math_tutor"
    assert event_of({"gen_ai.agent.name": "数学"}).node == "chat"
    assert event_of({"graph.node.id": "research", "llm.model_name": "m"}).node == "research"


def test_an_unnamed_service_is_no_source() -> None:
    event = event_of({}, resource={"service.name": "unknown_service:python"})
    assert event.source is None


def test_the_model_is_the_one_that_was_asked_for() -> None:
    event = event_of({"gen_ai.response.model": "claude-haiku-4-20260101"})
    assert event.model == "claude-haiku-4"
    assert event.served_model == "claude-haiku-4-20260101"
    assert event_of({"gen_ai.request.model": "", "gen_ai.response.model": "x"}).model == "x"


@pytest.mark.parametrize(
    ("told", "upstream"),
    [
        ({"server.address": "eu.api.example"}, "eu.api.example"),
        # Of a pool: another one with each call.
        ({"server.address": "10.2.3.4"}, None),
        ({"server.address": "::1"}, None),
        # A host, whatever is written around it.
        ({"server.address": "https://eu.api.example:8443/v1/"}, "eu.api.example"),
        ({"server.address": "eu.api.example:443"}, "eu.api.example"),
        ({"server.address": "http://10.2.3.4:80/v1"}, None),
        ({"server.address": "http://[::1"}, None),
        ({"server.address": "openrouter.ai", "failsoft.upstream": "azure"}, "azure"),
        ({}, None),
    ],
)
def test_the_upstream_is_what_the_agent_tells_or_the_host(
    told: dict[str, str], upstream: str | None
) -> None:
    assert event_of(told).upstream == upstream


@pytest.mark.parametrize(
    "name",
    [
        "openai.response.system_fingerprint",
        "gen_ai.openai.response.system_fingerprint",
        "gen_ai.openai.system_fingerprint",
        "failsoft.system_fingerprint",
    ],
)
def test_the_fingerprint_is_read_under_all_its_names(name: str) -> None:
    assert event_of({name: "fp_44709d6fcb"}).system_fingerprint == "fp_44709d6fcb"


@pytest.mark.parametrize(
    "name",
    [
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "llm.usage.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
    ],
)
def test_reasoning_tokens_are_read_under_all_their_names(name: str) -> None:
    assert event_of({name: 448}).reasoning_tokens == 448


def test_a_run_that_ended_degraded_is_told_beside_the_call() -> None:
    told = {
        "failsoft.kind": "degraded",
        "failsoft.reason": "chat_parse_failed",
        "failsoft.attempts": 2,
        "failsoft.parse_error_type": "truncated",
    }
    call, run = events_of(read_span(told))
    assert (call.kind, run.kind) == (EventKind.PARSE_INVALID, EventKind.DEGRADED)
    assert (run.attempts, run.status, run.latency_ms) == (2, "failed", None)
    assert call.event_id != run.event_id
    (alone,) = only({**told, "failsoft.parse_error_type": ""})
    assert make_event(alone, 1, None).kind is EventKind.DEGRADED


def test_a_tool_nobody_registered_is_told_beside_the_call() -> None:
    told = {"failsoft.kind": "unknown_tool", "failsoft.tool": "serch"}
    call, tool = events_of(read_span(told))
    assert (call.kind, tool.tool) == (EventKind.SUCCEEDED, "serch")


def test_ids_follow_from_project_trace_span_and_what_it_is_taken_as() -> None:
    first, again = draft_span(read_span())[0], draft_span(read_span())[0]
    other = draft_span(read_span(span_id="1" * 16))[0]
    ids = {make_event(draft, 1, None).event_id for draft in (first, again)}
    ids |= {make_event(first, 2, None).event_id, make_event(other, 1, None).event_id}
    assert len(ids) == 3
    assert {identifier.version for identifier in ids} == {7}
    # Checked or not, it is the same call.
    verdict = SchemaVerdict(ParseErrorType.NOT_JSON)
    assert make_event(first, 1, verdict).event_id == make_event(first, 1, None).event_id


def test_an_answer_is_open_until_the_agent_has_told_the_outcome() -> None:
    answered = {"gen_ai.output.messages": MESSAGES}
    (draft,) = draft_span(read_span({**answered, "gen_ai.output.type": "json"}))
    assert draft.is_open
    assert draft.expects_json
    assert draft.node == "chat"
    assert draft.finish_reason == "stop"
    for told in ({"failsoft.kind": "succeeded"}, {"failsoft.parse_error_type": "other"}):
        (draft,) = draft_span(read_span({**answered, **told}))
        assert not draft.is_open
    assert not draft_span(read_span())[0].is_open


def test_what_is_wrong_with_an_answer_comes_before_what_ended_the_span() -> None:
    span = read_span({"gen_ai.output.messages": MESSAGES, "error.type": "timeout"})
    (event,) = events_of(span, SchemaVerdict(ParseErrorType.SCHEMA_INVALID))
    assert event.parse_error_type is ParseErrorType.SCHEMA_INVALID
    assert event.raw_output_preview == "{}"


def test_a_length_that_makes_no_sense_is_unknown() -> None:
    assert event_of(end_time_unix_nano=bodies.START_NS - 1).latency_ms is None


@pytest.mark.parametrize(
    ("attributes", "changes"),
    [
        ({"failsoft.kind": "exploded"}, {}),
        ({}, {"trace_id": "0" * 32}),
        ({}, {"trace_id": "ab"}),
        ({}, {"span_id": "0" * 16}),
        ({}, {"span_id": ""}),
        ({}, {"start_ns": 0}),
        ({}, {"end_time_unix_nano": 2**64 - 1}),
    ],
)
def test_a_span_without_identity_or_time_is_refused(
    attributes: dict[str, Any], changes: dict[str, Any]
) -> None:
    with pytest.raises(NoEventError):
        draft_span(read_span(attributes, **changes))


def test_unknown_attributes_are_dropped_and_counted() -> None:
    span = read_span({"gen_ai.input.messages": "hello", "my.key": 1, "failsoft.nod": "x"})
    assert span.dropped == 2
    assert count_unknown(span.attributes) == 1
    assert "hello" not in repr(span)


def test_a_log_record_inside_a_span_speaks_of_the_answer_only() -> None:
    body = {"message": {"content": "{}"}, "finish_reason": "length"}
    (draft,) = draft_log(read_log("gen_ai.choice", {}, body))
    assert (draft.slot, draft.answer.text, draft.finish_reason) == (ANSWER, "{}", "length")
    assert not draft_log(read_log("gen_ai.choice", {"index": 1}, body))
    assert not draft_log(read_log("gen_ai.user.message", {}, {"content": "hi"}))


def test_a_log_record_may_tell_the_end_of_a_run_and_nothing_unknown() -> None:
    told = {"failsoft.kind": "degraded", "server.address": "api.example"}
    (draft,) = draft_log(read_log("ended", told))
    assert (draft.kind, draft.slot) == (EventKind.DEGRADED, "degraded")
    assert draft.fields["attributes"]["server_address"] == "api.example"
    with pytest.raises(NoEventError):
        draft_log(read_log("ended", {"failsoft.kind": "exploded"}))


DETAILS = "gen_ai.client.inference.operation.details"
MESSAGES = [{"role": "assistant", "parts": [{"type": "text", "content": "{}"}]}]


def test_a_log_record_outside_of_a_span_is_the_call_itself() -> None:
    told = {**bodies.CHAT, "gen_ai.output.messages": MESSAGES}
    outside = {"trace_id": "", "span_id": ""}
    with pytest.raises(NoEventError):
        draft_log(read_log(DETAILS, told, **outside))
    told["failsoft.correlation_id"] = "run-1"
    (draft,) = draft_log(read_log(DETAILS, told, **outside))
    event = make_event(draft, 1, None)
    assert (event.model, event.correlation_id) == ("claude-haiku-4", "run-1")
    assert make_event(draft, 1, None).event_id == event.event_id
    # A choice alone does not say which call it was.
    assert not draft_log(read_log("gen_ai.choice", {}, {"message": {"content": "x"}}, **outside))


def test_attributes_that_hold_anything_do_not_break_the_mapping() -> None:
    odd: list[Any] = [None, True, -1, 2**62, 1.5, float("nan"), "", [], {}, ["a", {}]]
    names = [*bodies.CHAT, "gen_ai.output.messages", "gen_ai.completion", "llm.model_name"]
    names += ["llm.invocation_parameters", "output.value", "failsoft.attempt", "error.type"]
    for name in names:
        for value in odd:
            for draft in only({"gen_ai.operation.name": "chat", name: value}):
                make_event(draft, 1, None)


def test_messages_may_be_json_or_structured() -> None:
    (one,) = draft_span(read_span({"gen_ai.output.messages": MESSAGES}))
    (other,) = draft_span(read_span({"gen_ai.output.messages": json.dumps(MESSAGES)}))
    assert one.answer == other.answer == Answer("{}")
