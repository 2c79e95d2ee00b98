"""Spans as clients sent them that no family of `tests/integrations` runs, cut to what matters."""

import json
from typing import Any

import pytest

from diagnostics.ingest.otlp.mapping import draft_span, is_strange
from failsoft.events import CallErrorType, EventKind, ParseErrorType, PostedEvent, UncheckedReason
from tests.diagnostics.ingest.otlp.test_conventions import SCHEMA, demanding, event_of, read_span

GOOD = '{"days": 3}'
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "asked-1",
}
COHERE = {
    "llm.request.type": "chat",
    "gen_ai.request.model": "asked-1",
    "gen_ai.completion.0.role": "assistant",
}
CLAUDE_CODE = "com.anthropic.claude_code.tracing"
CLAUDE_CODE_CALL = {
    "span.type": "llm_request",
    "model": "claude-haiku-4-5",
    "gen_ai.system": "anthropic",
    "gen_ai.request.model": "claude-haiku-4-5",
    "session.id": "session-1",
}
LANGFUSE = {
    "langfuse.observation.type": "generation",
    "langfuse.observation.metadata.ls_provider": '"openai"',
    "langfuse.observation.metadata.ls_model_name": '"asked-1"',
    "langfuse.observation.model.name": "served-1",
}
MLFLOW = {"mlflow.spanType": '"CHAT_MODEL"', "model": '"asked-1"'}


def with_content(*parts: dict[str, Any]) -> PostedEvent:
    return event_of(demanding({**COHERE, "gen_ai.completion.0.content": json.dumps(parts)}))


def test_parts_in_the_content_of_a_completion_are_not_the_text_of_the_model() -> None:
    thought, text = {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": GOOD}
    assert with_content(thought, text).kind is EventKind.SUCCEEDED
    cut = with_content({"type": "text", "text": '{"da'})
    assert cut.parse_error_type == ParseErrorType.TRUNCATED
    assert cut.raw_output_preview == '{"da'
    assert with_content({"type": "text", "text": ""}).parse_error_type == "empty_output"


def test_a_list_that_the_model_wrote_stays_its_text() -> None:
    listed = with_content({"type": "bus", "text": "by the coast"})
    assert listed.raw_output_preview == '[{"type": "bus", "text": "by the coast"}]'


def test_a_block_of_thoughts_printed_as_a_text_is_no_part_of_the_answer() -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "x"}}}
    parts = [{"type": "text", "content": json.dumps(thought)}, {"type": "text", "content": GOOD}]
    messages = json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "stop"}])
    event = event_of(demanding({**CHAT, "gen_ai.output.messages": messages}))
    assert event.kind is EventKind.SUCCEEDED


def test_a_role_alone_is_unknown_where_tools_were_offered_and_no_ending_is_told() -> None:
    offered = {**COHERE, "llm.request.functions.0.name": "plan"}
    assert event_of(offered).kind is EventKind.SUCCEEDED
    ended = {**offered, "gen_ai.response.finish_reasons": ["stop"]}
    assert event_of(ended).parse_error_type == "empty_output"
    assert event_of(COHERE).parse_error_type == "empty_output"


@pytest.mark.parametrize("scope", ["logfire.openai", "logfire.anthropic"])
def test_a_stream_told_by_a_span_of_its_own_is_one_call(scope: str) -> None:
    opening = {**CHAT, "gen_ai.response.model": "asked-1"}
    assert draft_span(read_span(opening, scope)) == []
    assert event_of({**opening, "gen_ai.usage.output_tokens": 9}, scope).output_tokens == 9
    failed = event_of(opening, scope, status="Error code: 429")
    assert failed.attributes["call_error_type"] == CallErrorType.RATE_LIMITED


@pytest.mark.parametrize("scope", ["ai", "gen_ai"])
def test_a_stream_closed_before_anything_was_told_is_cancelled(scope: str) -> None:
    assert event_of(CHAT, scope).kind is EventKind.CANCELLED
    ended = {**CHAT, "gen_ai.response.finish_reasons": ["stop"]}
    assert event_of(ended, scope).kind is EventKind.SUCCEEDED
    assert event_of(CHAT, "own").kind is EventKind.SUCCEEDED


def test_the_usage_of_a_task_below_is_no_call() -> None:
    usage = {
        "ag2.span.type": "usage",
        "gen_ai.response.model": "served-1",
        "gen_ai.usage.output_tokens": 900,
    }
    assert draft_span(read_span(usage)) == []


def test_tokens_of_thinking_are_reasoning_tokens() -> None:
    event = event_of({**CHAT, "gen_ai.usage.thinking_tokens": 5, "gen_ai.usage.output_tokens": 9})
    assert event.reasoning_tokens == 5


def test_claude_code_tells_cached_tokens_beside_those_of_the_input() -> None:
    told = {
        **CLAUDE_CODE_CALL,
        "input_tokens": 23,
        "cache_read_tokens": 5,
        "cache_creation_tokens": 3,
        "output_tokens": 17,
        "gen_ai.response.finish_reasons": ["end_turn"],
    }
    event = event_of(told, CLAUDE_CODE)
    assert (event.input_tokens, event.output_tokens) == (31, 17)
    assert event.attributes["conversation_id"] == "session-1"
    assert event_of(told, "own").input_tokens is None


def test_claude_code_tells_the_status_of_a_failed_call() -> None:
    failed = {**CLAUDE_CODE_CALL, "status_code": 429}
    event = event_of(failed, CLAUDE_CODE, status="scripted failure")
    assert event.attributes["call_error_type"] == CallErrorType.RATE_LIMITED


@pytest.mark.parametrize(
    "details",
    [
        {"input_cache_read": 5, "input_cache_creation": 3, "output_reasoning": 5},
        {"input_cached_tokens": 8, "output_reasoning_tokens": 5},
    ],
    ids=["callback for LangChain", "SDK for JavaScript"],
)
def test_langfuse_tells_details_beside_the_totals(details: dict[str, int]) -> None:
    usage = {"input": 23, "output": 12, **details}
    told = {
        **LANGFUSE,
        "langfuse.observation.usage_details": json.dumps({**usage, "total": 48}),
        "langfuse.observation.output": json.dumps({"role": "assistant", "content": GOOD}),
    }
    event = event_of(told)
    assert (event.provider, event.model, event.served_model) == ("openai", "asked-1", "served-1")
    assert (event.input_tokens, event.output_tokens, event.reasoning_tokens) == (31, 17, 5)


@pytest.mark.parametrize(
    ("message", "fault", "preview"),
    [
        (
            {"invalid_tool_calls": [{"name": "plan", "args": '{"days": [{"to'}]},
            "truncated",
            '{"days": [{"to',
        ),
        ({"additional_kwargs": {"refusal": "I can't help."}}, "refusal", "I can't help."),
    ],
)
def test_langchain_messages_keep_what_they_could_not_read_beside_the_content(
    message: dict[str, Any], fault: str, preview: str
) -> None:
    output = json.dumps({"role": "assistant", "content": "", **message})
    event = event_of({**LANGFUSE, "langfuse.observation.output": output})
    assert event.parse_error_type == fault
    assert event.raw_output_preview == preview


def test_mlflow_tells_the_requested_model_beside_the_one_that_answered() -> None:
    answered = {**MLFLOW, "mlflow.llm.model": '"served-1"', "mlflow.spanOutputs": '"Hello"'}
    event = event_of(answered)
    assert (event.model, event.served_model) == ("asked-1", "served-1")
    assert event_of(MLFLOW, status="Error code: 429").model == "asked-1"


def test_a_failed_span_of_anything_with_a_model_is_no_call() -> None:
    assert draft_span(read_span({"model": "Corolla"}, status="no parts")) == []


def test_nothing_served_a_call_that_failed_unanswered() -> None:
    named = {"llm.invocation_parameters": '{"model": "asked-1"}', "llm.model_name": "asked-1"}
    failed = event_of({**named, "openinference.span.kind": "LLM"}, status="Error code: 429")
    assert (failed.model, failed.served_model) == ("asked-1", None)


def test_an_answer_after_thoughts_is_read_where_each_block_is_a_completion() -> None:
    thought = {**COHERE, "gen_ai.completion.0.finish_reason": "end_turn"}
    answered = {**thought, "gen_ai.completion.1.content": GOOD}
    assert event_of(demanding(answered)).kind is EventKind.SUCCEEDED
    assert event_of(demanding(thought)).parse_error_type == "empty_output"


def test_a_failed_request_for_embeddings_is_no_call() -> None:
    failed = {"gen_ai.request.type": "embedding", "gen_ai.request.model": "asked-1"}
    assert draft_span(read_span(failed, status="Error code: 429")) == []


def test_spring_ai_writes_every_value_as_a_text_and_none_for_a_missing_name() -> None:
    told = {
        **CHAT,
        "gen_ai.request.temperature": "0.7",
        "gen_ai.request.max_tokens": "50",
        "gen_ai.response.model": "none",
        "gen_ai.response.finish_reasons": '["STOP"]',
        "gen_ai.usage.input_tokens": "31",
    }
    event = event_of(told)
    assert (event.temperature, event.max_output_tokens, event.input_tokens) == (0.7, 50, 31)
    assert (event.model, event.served_model, event.finish_reason) == ("asked-1", None, "STOP")
    assert event_of({**told, "gen_ai.request.temperature": "warm"}).temperature is None


@pytest.mark.parametrize("reason", ["error", "timeout"])
def test_a_call_that_broke_off_before_anything_of_an_answer_failed(reason: str) -> None:
    mastra = {
        **CHAT,
        "gen_ai.response.finish_reasons": json.dumps([reason]),
        "gen_ai.response.model": "asked-1",
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": ""}]}]
        ),
    }
    failed = event_of(mastra)
    assert (failed.kind, failed.served_model) == (EventKind.PROVIDER_ERROR, None)
    is_late = failed.attributes["call_error_type"] == CallErrorType.TIMEOUT
    assert is_late is (reason == "timeout")
    began = event_of(mastra | {"gen_ai.usage.output_tokens": 17})
    assert began.parse_error_type == ParseErrorType.TRUNCATED


def test_voltagent_tells_a_call_under_names_of_its_own() -> None:
    told = {
        "span.type": "llm",
        "entity.name": "trip-agent",
        "conversation.id": "conversation-1",
        "llm.model": "asked-1",
        "llm.temperature": 0.2,
        "llm.max_output_tokens": 100,
        "llm.usage.prompt_tokens": 31,
        "llm.usage.completion_tokens": 17,
        "llm.usage.reasoning_tokens": 5,
        "llm.finish_reason": "length",
    }
    event = event_of(told, scope="@voltagent/core")
    assert (event.node, event.model, event.temperature) == ("trip-agent", "asked-1", 0.2)
    assert (event.max_output_tokens, event.input_tokens, event.output_tokens) == (100, 31, 17)
    assert (event.reasoning_tokens, event.parse_error_type) == (5, ParseErrorType.TRUNCATED)
    assert event.attributes["conversation_id"] == "conversation-1"


def test_langchain_for_node_names_provider_and_served_model_beside_the_call() -> None:
    served = {"response_metadata": {"model_name": "asked-1-2026-01-01"}, "content": GOOD}
    told = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "asked-1",
        "llm.invocation_parameters": '{"model": "asked-1"}',
        "metadata": '{"ls_provider": "openai"}',
        "output.value": json.dumps({"generations": [[{"message": {"kwargs": served}}]]}),
    }
    event = event_of(told)
    assert (event.provider, event.model) == ("openai", "asked-1")
    assert event.served_model == "asked-1-2026-01-01"


def test_strands_for_node_writes_reasons_and_parts_in_camel_case() -> None:
    part = {"type": "toolUse", "name": "book", "input": {"days": 3}}
    choice = {"finish_reason": "toolUse", "message": json.dumps([part])}
    (draft,) = draft_span(read_span(CHAT, events=[("gen_ai.choice", choice)]))
    assert [call.name for call in draft.answer.calls] == ["book"]
    assert draft.finish_reason == "toolUse"


@pytest.mark.parametrize(
    "kind", [{"genkit:type": "action", "genkit:metadata:subtype": "flow"}, {"genkit:type": "util"}]
)
def test_what_genkit_does_around_calls_is_understood_and_no_call(kind: dict[str, str]) -> None:
    around = read_span({**kind, "genkit:name": "trip"})
    assert draft_span(around) == []
    assert not is_strange(around)


def test_the_proxy_of_litellm_names_the_provider_before_the_model() -> None:
    told = {
        "gen_ai.operation.name": "aresponses",
        "gen_ai.system": "",
        "gen_ai.request.model": "asked-1",
        "litellm.provider.model": "openai/asked-1",
    }
    assert event_of(told).provider == "openai"
    assert event_of({**told, "litellm.provider.model": "asked-1"}).provider is None


def test_the_span_that_beeai_writes_for_an_error_below_a_call_is_none() -> None:
    bare, scope = {"openinference.span.kind": "LLM"}, "openinference.instrumentation.beeai"
    assert draft_span(read_span(bare, scope)) == []
    assert event_of(bare, scope, status="Error code: 429").kind is EventKind.PROVIDER_ERROR


def test_cloudflares_gateway_names_provider_and_reply_its_own_way() -> None:
    choice = {"message": {"role": "assistant", "content": '{"da'}, "finish_reason": "length"}
    told = {
        "gen_ai.request.model": "asked-1",
        "gen_ai.model.provider": "openai",
        "gen_ai.usage.output_tokens": 17,
        "gen_ai.completion_json": json.dumps({"choices": [choice]}),
    }
    event = event_of(told)
    assert (event.provider, event.finish_reason) == ("openai", "length")
    assert event.parse_error_type == ParseErrorType.TRUNCATED


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([{"role": "assistant", "content": "By bus."}], ParseErrorType.NOT_JSON),
        ([{"role": "assistant", "content": None, "refusal": "No."}], ParseErrorType.REFUSAL),
        ([{"role": "assistant", "content": GOOD}], None),
        (GOOD, None),
    ],
)
def test_langwatch_tells_the_messages_of_a_call_in_an_output_of_its_own(
    value: object, error: ParseErrorType | None
) -> None:
    told = {
        "langwatch.span.type": "llm",
        "langwatch.output": json.dumps({"type": "chat_messages", "value": value}),
        "gen_ai.request.model": "openai/asked-1",
        "gen_ai.usage.prompt_tokens": 31,
    }
    event = event_of(demanding(told))
    assert (event.parse_error_type, event.unchecked, event.provider) == (error, None, "openai")


def test_a_stream_of_which_laminar_tells_nothing_was_closed() -> None:
    told = {"lmnr.span.type": "LLM", "gen_ai.request.model": "asked-1", "gen_ai.system": "openai"}
    assert event_of(told, "lmnr.tracer").kind is EventKind.CANCELLED


def test_the_printed_address_of_an_object_is_no_answer() -> None:
    printed = "<openai.Stream object at 0x7f8f813cffe0>"
    told = {"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": printed}
    event = event_of(demanding(told))
    assert (event.kind, event.unchecked) == (EventKind.SUCCEEDED, UncheckedReason.NO_ANSWER)


def test_a_tool_called_in_the_content_of_a_completion_is_a_call() -> None:
    function = {"name": "book", "arguments": GOOD}
    call = {"id": "call-1", "type": "function", "function": function}
    completion = json.dumps([{"role": "assistant", "content": [call]}])
    event = ("gen_ai.content.completion", {"gen_ai.completion": completion})
    (draft,) = draft_span(read_span(CHAT, events=[event]))
    assert [(call.name, call.arguments) for call in draft.answer.calls] == [("book", GOOD)]


def test_effect_tells_an_answer_that_it_cannot_read_and_a_fiber_that_was_interrupted() -> None:
    used = {**CHAT, "gen_ai.usage.output_tokens": 17}
    raised = ("exception", {"exception.type": "MalformedOutput"})
    unread = event_of(used, status="Generated object failed to conform", events=[raised])
    assert unread.parse_error_type == ParseErrorType.SCHEMA_INVALID
    assert event_of({**CHAT, "status.interrupted": True}).kind is EventKind.CANCELLED


@pytest.mark.parametrize(
    ("reason", "error"),
    [("max_output_tokens", ParseErrorType.TRUNCATED), ("content_filter", ParseErrorType.REFUSAL)],
)
def test_why_the_model_stopped_says_more_than_the_error_of_the_client_that_read_it(
    reason: str, error: ParseErrorType
) -> None:
    ended = {**CHAT, "gen_ai.response.finish_reasons": [reason], "gen_ai.usage.output_tokens": 17}
    raised = ("exception", {"exception.type": "MalformedOutput"})
    event = event_of(ended, status="Generated object failed to conform", events=[raised])
    assert event.parse_error_type == error


def test_a_call_of_mistrals_sdk_of_which_nothing_came_back_failed() -> None:
    scope = "mistralai_sdk_tracer"
    assert event_of(CHAT, scope).kind is EventKind.PROVIDER_ERROR
    begun = {**CHAT, "gen_ai.usage.output_tokens": 17}
    assert event_of(begun, scope).kind is EventKind.SUCCEEDED


def test_events_that_leave_the_text_out_tell_reason_and_tokens_all_the_same() -> None:
    used = {"gen_ai.usage.input_tokens": 31, "gen_ai.usage.output_tokens": 17}
    chunk, last = {"index": 0}, {"index": 0, "finish_reason": "length"}
    events = [("gen_ai.usage", used), ("gen_ai.choice", chunk), ("gen_ai.choice", last)]
    event = event_of(CHAT, "ax", events=events)
    assert event.parse_error_type == ParseErrorType.TRUNCATED
    assert (event.input_tokens, event.output_tokens) == (31, 17)
    refused = ("exception", {"exception.type": "AxAIRefusalError"})
    event = event_of(CHAT, "ax", status="Model refused to fulfill request", events=[refused])
    assert event.parse_error_type == ParseErrorType.REFUSAL


def test_a_call_whose_sampler_dropped_its_attributes_has_the_model_of_its_name() -> None:
    scope = "opentelemetry.instrumentation.openai"
    failed = {"error.type": "RateLimitError"}
    event = event_of(failed, scope, status="Error code: 429", name="chat asked-1")
    assert (event.kind, event.model) == (EventKind.PROVIDER_ERROR, "asked-1")
    told = {"gen_ai.response.model": "served-1", "gen_ai.usage.output_tokens": 17}
    event = event_of(told, scope, name="chat asked-1")
    assert (event.model, event.served_model) == ("asked-1", "served-1")
    openlit = event_of({}, "openlit.otel.tracing", status="Error code: 429", name="chat asked-1")
    assert (openlit.model, openlit.attributes["call_error_type"]) == ("asked-1", "rate_limited")
    assert draft_span(read_span(failed, "app", status="late", name="chat asked-1")) == []
    assert draft_span(read_span(failed, scope, status="late", name="embeddings e-1")) == []


def test_datadog_tells_what_was_requested_under_the_name_of_the_sdk() -> None:
    told = {
        "gen_ai.operation.name": "llm",
        "gen_ai.provider.name": "unknown",
        "gen_ai.request.model": "served-1",
        "gen_ai.usage.reasoning_output_tokens": 5,
        "openai.request.provider": "OpenAI",
        "openai.request.model": "asked-1",
        "openai.response.model": "served-1",
    }
    event = event_of(told)
    assert (event.provider, event.model, event.served_model) == ("OpenAI", "asked-1", "served-1")
    assert event.reasoning_tokens == 5


@pytest.mark.parametrize("word", ["unknown", "eino", "gcp.vertex.agent", "Langchain"])
def test_a_framework_or_an_unknown_is_no_provider(word: str) -> None:
    assert event_of({**CHAT, "gen_ai.provider.name": word}).provider is None
    named = {**CHAT, "gen_ai.provider.name": word, "gen_ai.system": "openai"}
    assert event_of(named).provider == "openai"


def test_any_agent_tells_the_answer_as_the_output_of_a_call() -> None:
    told = {
        "gen_ai.operation.name": "call_llm",
        "gen_ai.request.model": "asked-1",
        "gen_ai.usage.output_tokens": 17,
    }
    bad = event_of(demanding({**told, "gen_ai.output": "By bus."}), "any_agent")
    assert bad.parse_error_type == ParseErrorType.NOT_JSON
    called = [{"tool.name": "book", "tool.args": '{"days": 3}'}]
    (draft,) = draft_span(read_span({**told, "gen_ai.output": json.dumps(called)}, "any_agent"))
    assert [(call.name, call.arguments) for call in draft.answer.calls] == [("book", GOOD)]


@pytest.mark.parametrize(
    "name",
    [
        "dev.langchain4j.exception.ContentFilteredException",
        "Symfony\\AI\\Platform\\Exception\\ContentFilterException",
    ],
)
def test_an_answer_withheld_by_a_filter_is_refused(name: str) -> None:
    event = event_of(CHAT, events=[("exception", {"exception.type": name})])
    assert event.parse_error_type == ParseErrorType.REFUSAL


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("System.Threading.Tasks.TaskCanceledException", "A task was canceled."),
        ("System.OperationCanceledException", "The operation was canceled."),
        (
            "java.util.concurrent.CancellationException",
            "java.util.concurrent.CancellationException",
        ),
        ("kotlinx.coroutines.JobCancellationException", "Job was cancelled"),
    ],
)
def test_a_task_that_its_caller_cancelled_is_cancelled(name: str, text: str) -> None:
    assert event_of({**CHAT, "error.type": name}, status=text).kind is EventKind.CANCELLED


def test_a_task_that_the_client_of_dotnet_cancelled_after_its_timeout_timed_out() -> None:
    text = "The request was canceled due to the configured HttpClient.Timeout of 100 s elapsing."
    event = event_of(
        {**CHAT, "error.type": "System.Threading.Tasks.TaskCanceledException"}, status=text
    )
    assert event.attributes["call_error_type"] == CallErrorType.TIMEOUT


def told_messages(*messages: dict[str, Any]) -> dict[str, Any]:
    return {**CHAT, "gen_ai.output.messages": json.dumps(messages)}


def test_the_answer_after_turns_with_tools_is_the_last_one() -> None:
    """.NET's chat client reports what its inner one did, too, if tools are called within."""
    call = {"type": "tool_call", "id": "call-1", "name": "search", "arguments": {"query": "x"}}
    turns = (
        {"role": "assistant", "parts": [call], "finish_reason": "stop"},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call-1"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "By bus."}]},
    )
    assert event_of(demanding(told_messages(*turns))).parse_error_type == ParseErrorType.NOT_JSON
    choices = ({"role": "assistant", "parts": [{"type": "text", "content": GOOD}]}, turns[2])
    assert event_of(demanding(told_messages(*choices))).kind is EventKind.SUCCEEDED


def test_a_refusal_that_dotnet_tells_as_the_content_of_an_error_is_read() -> None:
    part = {"type": "error", "content": "I'm sorry, but I can't help with that request."}
    told = told_messages({"role": "assistant", "parts": [part], "finish_reason": "stop"})
    assert event_of(demanding(told)).parse_error_type == ParseErrorType.REFUSAL


def test_eino_tells_the_component_that_a_root_span_is_of() -> None:
    told = {
        "gen_ai.span.kind": "workflow",
        "runinfo.component": "ChatModel",
        "runinfo.type": "OpenAI",
        "gen_ai.system": "eino",
        "gen_ai.request.model": "asked-1",
    }
    event = event_of(told, status="Error code: 429")
    assert (event.provider, event.model) == ("OpenAI", "asked-1")
    around = {"gen_ai.span.kind": "LLM", "runinfo.component": "Workflow"}
    assert draft_span(read_span({**told, **around}, status="Error code: 429")) == []
    assert event_of({**CHAT, "gen_ai.span.kind": "LLM", "gen_ai.operation.name": ""}) is not None


TRACEAI = {
    "gen_ai.span.kind": "LLM",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.parameters": '{"model": "asked-1", "max_tokens": 300, "temperature": 0.5}',
}


def test_traceai_tells_the_requested_model_in_the_parameters() -> None:
    answered = {"gen_ai.request.model": "served-1", "output.value": "By bus."}
    event = event_of(demanding({**TRACEAI, **answered}))
    assert (event.model, event.served_model) == ("asked-1", "served-1")
    assert (event.max_output_tokens, event.temperature) == (300, 0.5)
    assert event.parse_error_type == ParseErrorType.NOT_JSON
    failed = event_of(TRACEAI, status="Error code: 429")
    assert (failed.model, failed.served_model) == ("asked-1", None)


def test_traceai_lists_messages_as_openinference_does() -> None:
    message = "gen_ai.output.messages.0.message."
    function = f"{message}tool_calls.0.tool_call.function."
    told = {
        **TRACEAI,
        "output.value": "Function: book({})",
        f"{message}role": "assistant",
        f"{function}name": "book",
        f"{function}arguments": GOOD,
    }
    (draft,) = draft_span(read_span(told))
    assert [(call.name, call.arguments) for call in draft.answer.calls] == [("book", GOOD)]


def test_nemo_agent_toolkit_tells_the_reply_in_its_metadata() -> None:
    answered = {
        "generation_info": {"finish_reason": "length", "model_name": "served-1"},
        "message": {"response_metadata": {"model_provider": "openai"}},
    }
    told = {
        "openinference.span.kind": "LLM",
        "nat.function.name": "<workflow>",
        "nat.metadata": json.dumps({"chat_responses": [answered]}),
        "llm.model_name": "asked-1",
        "llm.provider": "langchain",
        "llm.token_count.completion": 17,
        "output.value": '{"da',
    }
    event = event_of(told, "nat")
    assert (event.node, event.provider, event.model) == ("workflow", "openai", "asked-1")
    assert (event.served_model, event.parse_error_type) == ("served-1", ParseErrorType.TRUNCATED)
    called = {"generation_info": {"finish_reason": "tool_calls"}}
    metadata = {"nat.metadata": json.dumps({"chat_responses": [called]}), "output.value": ""}
    assert event_of({**told, **metadata}, "nat").kind is EventKind.SUCCEEDED


def test_honeyhive_tells_a_call_by_the_type_of_its_event() -> None:
    told = {
        "honeyhive_event_type": "model",
        "honeyhive_config.provider": "openai",
        "honeyhive_config.model": "asked-1",
        "honeyhive_config.temperature": 0.2,
        "honeyhive_config.max_tokens": 100,
        "honeyhive_metadata.prompt_tokens": 31,
        "honeyhive_metadata.completion_tokens": 17,
        "honeyhive_outputs.content": "By bus.",
    }
    event = event_of(demanding(told))
    assert (event.provider, event.model, event.temperature) == ("openai", "asked-1", 0.2)
    assert (event.max_output_tokens, event.input_tokens, event.output_tokens) == (100, 31, 17)
    assert event.parse_error_type == ParseErrorType.NOT_JSON
    for word in ("chain", "session", "tool"):
        assert draft_span(read_span({**told, "honeyhive_event_type": word})) == []


def test_langchain4j_counts_tokens_under_names_of_its_own() -> None:
    told = {**CHAT, "outcome": "SUCCESS", "input_tokens": "31", "output_tokens": "17"}
    event = event_of(told)
    assert (event.input_tokens, event.output_tokens) == (31, 17)


def test_genkit_names_the_provider_before_the_model() -> None:
    told = {"genkit:metadata:subtype": "model", "genkit:name": "googleai/asked-1"}
    assert event_of(told).provider == "googleai"
    assert event_of({**told, "genkit:name": "asked-1"}).provider is None


def test_an_answer_that_a_filter_ended_is_refused_though_the_client_calls_it_an_error() -> None:
    ended = {"openinference.span.kind": "LLM", "llm.finish_reason": "content_filter"}
    raised = ("exception", {"exception.message": "ended with unsuccessful terminal state"})
    event = event_of(ended, status="ended with unsuccessful terminal state", events=[raised])
    assert event.parse_error_type == ParseErrorType.REFUSAL


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(GOOD, None), ('{"weeks": 3}', "schema_invalid"), ('{"day', "truncated")],
)
def test_netra_tells_a_call_of_a_tool_as_the_content(arguments: str, error: str | None) -> None:
    tool = {"type": "function", "function": {"name": "plan", "parameters": SCHEMA}}
    told = {
        **COHERE,
        "gen_ai.tool.definitions": json.dumps([tool]),
        "gen_ai.completion.0.content": json.dumps({"name": "plan", "arguments": arguments}),
        "gen_ai.completion.0.tool_call_id": "call_0",
    }
    assert event_of(told).parse_error_type == error
    hidden = {**told, "gen_ai.completion.0.content": "a call"}
    assert event_of(hidden).unchecked is UncheckedReason.NO_SCHEMA


def test_agentops_tells_a_refusal_beside_a_content_that_it_leaves_out() -> None:
    event = event_of({**COHERE, "gen_ai.completion.0.refusal": "I can't help with that."})
    assert event.parse_error_type == ParseErrorType.REFUSAL
    assert event.raw_output_preview == "I can't help with that."


def test_autogen_tells_why_an_answer_ended_in_the_reply_alone() -> None:
    told = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "asked-1",
        "llm.output_messages.0.message.content": "",
        "output.mime_type": "application/json",
        "output.value": '{"finish_reason": "content_filter", "content": "", "usage": {}}',
    }
    assert event_of(told).parse_error_type == ParseErrorType.REFUSAL


@pytest.mark.parametrize(
    ("name", "said", "error"),
    [
        ("ChatModelError", "Chat Model error\n  litellm.RateLimitError", "rate_limited"),
        ("ChatModelError", "The model failed to satisfy the schema", "schema_invalid"),
        ("EmptyChatModelResponseError", "Chat Model error", "empty_output"),
    ],
)
def test_an_error_that_beeai_prints_as_the_output_is_not_what_the_model_wrote(
    name: str, said: str, error: str
) -> None:
    told = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "asked-1",
        "output.mime_type": "text/plain",
        "output.value": f"{name}(beeai_framework.backend.errors): {said}",
    }
    raised = ("exception", {"exception.type": name, "exception.message": said})
    event = event_of(demanding(told), status="", events=[raised])
    assert error in (event.parse_error_type, event.attributes.get("call_error_type"))
    assert event.raw_output_preview is None
