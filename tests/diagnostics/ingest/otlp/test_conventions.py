"""Spans of other clients, as their documentation describes them, become the events they are."""

import json
from typing import Any

import pytest

from diagnostics.ingest.answer_verdicts import AnswerVerdicts
from diagnostics.ingest.otlp import protobuf
from diagnostics.ingest.otlp.attributes import CONVENTIONS, OPERATIONS, is_known
from diagnostics.ingest.otlp.drafts import make_event
from diagnostics.ingest.otlp.mapping import draft_span, is_strange
from diagnostics.ingest.otlp.telemetry import Span, UnreadItem
from failsoft.events import PostedEvent, UncheckedReason
from tests.diagnostics import otlp_bodies as bodies

BAD = '{"city": "Kyoto"}'
SCHEMA = {"type": "object", "required": ["days"]}


def read_span(
    attributes: dict[str, Any], scope: str = "", status: str | None = None, **changes: Any
) -> Span:
    """Return a span with these attributes alone; with a status text, it failed."""
    packed = bodies.span(is_error=status is not None, **changes)
    packed.status.message = status or ""
    del packed.attributes[:]
    packed.attributes.extend(bodies.key_values(attributes))
    (span,) = protobuf.read_spans(bodies.traces(packed, scope=scope).SerializeToString())
    assert not isinstance(span, UnreadItem)
    return span


def event_of(attributes: dict[str, Any], scope: str = "", **changes: Any) -> PostedEvent:
    (draft,) = draft_span(read_span(attributes, scope, **changes))
    draft, verdict = AnswerVerdicts(None, [draft]).judge(draft)
    return make_event(draft, 1, verdict)


def demanding(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes with a schema that `BAD` breaks."""
    return {"gen_ai.request.structured_output_schema": json.dumps(SCHEMA), **attributes}


LANGCHAIN = {
    "generations": [
        [
            {
                "text": BAD,
                "type": "ChatGeneration",
                "message": {
                    "lc": 1,
                    "type": "constructor",
                    "kwargs": {"content": BAD, "response_metadata": {"finish_reason": "stop"}},
                },
            }
        ]
    ],
    "llm_output": {"model_name": "gpt-4o"},
}
COMPLETION = {"choices": [{"message": {"role": "assistant", "content": BAD}}], "model": "gpt-4o"}
LANGSMITH = {"langsmith.span.kind": "llm", "gen_ai.operation.name": "chat"}
LLM = {"gen_ai.system": "openai", "gen_ai.request.model": "gpt-4o"}
MLFLOW = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.llm.model": '"gpt-4o"'}
TOKENS = {"gen_ai.response.prompt_tokens": 7, "gen_ai.response.completion_tokens": 9}
THOUGHT = {"text": "A city, and how many days?", "thought": True}
GENKIT = {"genkit:metadata:subtype": "model", "genkit:name": "gpt-4o"}
BRAINTRUST = {
    "braintrust.metadata": json.dumps({"provider": "openai", "model": "gpt-4o"}),
    "braintrust.metrics": json.dumps({"prompt_tokens": 7, "completion_tokens": 9}),
}
VERCEL = {
    "operation.name": "ai.generateObject.doGenerate trip-planner",
    "ai.operationId": "ai.generateObject.doGenerate",
    "ai.telemetry.functionId": "trip-planner",
    "ai.model.id": "gpt-4o",
    "ai.model.provider": "openai.chat",
}


@pytest.mark.parametrize(
    "attributes",
    [
        # LangSmith: the outputs of LangChain, of the wrapped SDK of OpenAI, and of an LLM.
        {**LANGSMITH, **LLM, "gen_ai.completion": json.dumps(LANGCHAIN)},
        {**LANGSMITH, **LLM, "gen_ai.completion": json.dumps(COMPLETION)},
        {**LANGSMITH, **LLM, "gen_ai.completion": json.dumps({"generations": [[{"text": BAD}]]})},
        # Vercel: objects and texts, of 4 to 6 and before.
        {**VERCEL, "ai.response.object": BAD},
        {**VERCEL, "ai.response.text": BAD},
        {**VERCEL, "ai.result.text": BAD},
        # Logfire's instrumentations of providers, plain and streamed; its list of events.
        {**LLM, "response_data": json.dumps({"message": {"role": "assistant", "content": BAD}})},
        {**LLM, "response_data": json.dumps({"combined_chunk_content": BAD, "chunk_count": 3})},
        {
            **LLM,
            "gen_ai.operation.name": "chat",
            "events": json.dumps(
                [
                    {"event.name": "gen_ai.user.message", "content": "Plan a trip."},
                    {"event.name": "gen_ai.choice", "message": {"content": BAD}},
                ]
            ),
        },
        # Google's ADK, Genkit and Braintrust: their own envelopes.
        {
            **LLM,
            **TOKENS,
            "gcp.vertex.agent.llm_response": json.dumps(
                {"content": {"role": "model", "parts": [THOUGHT, {"text": BAD}]}}
            ),
        },
        {
            **GENKIT,
            "genkit:output": json.dumps(
                {"message": {"role": "model", "content": [{"reasoning": "Hm."}, {"text": BAD}]}}
            ),
        },
        {**BRAINTRUST, "braintrust.output_json": json.dumps(COMPLETION["choices"])},
        {
            **BRAINTRUST,
            "braintrust.output_json": json.dumps(
                [{"role": "assistant", "content": [{"type": "text", "text": BAD}]}]
            ),
        },
        # MLflow: the provider's reply, or the texts of DSPy, as JSON.
        {**MLFLOW, "mlflow.spanOutputs": json.dumps(COMPLETION)},
        {**MLFLOW, "mlflow.spanOutputs": json.dumps([BAD])},
        {**MLFLOW, "mlflow.spanOutputs": json.dumps(BAD)},
        {
            **MLFLOW,
            "mlflow.spanOutputs": json.dumps(
                {"output": {"message": {"content": [{"text": BAD}]}}, "stopReason": "end_turn"}
            ),
        },
    ],
)
def test_the_answer_in_an_envelope_is_checked(attributes: dict[str, Any]) -> None:
    event = event_of(demanding(attributes))
    assert (event.parse_error_type, event.model) == ("schema_invalid", "gpt-4o")
    assert event.raw_output_preview == BAD


@pytest.mark.parametrize(
    ("events", "finish_reason"),
    [
        # Strands writes blocks of Bedrock; Semantic Kernel for .NET the event in an attribute.
        ([("gen_ai.choice", {"finish_reason": "end_turn", "message": json.dumps([{"text": BAD}])})],
         "end_turn"),
        ([("gen_ai.choice", {"gen_ai.event.content": json.dumps(
            {"finish_reason": "Stop", "index": 0, "message": {"content": BAD}})})], "Stop"),
        # Semantic Kernel for Python.
        ([("gen_ai.content.completion", {"gen_ai.completion": json.dumps(
            [{"role": "assistant", "content": BAD}])})], None),
        # The newest conventions, in an event of the span.
        ([("gen_ai.client.inference.operation.details", {"gen_ai.output.messages": json.dumps(
            [{"parts": [{"type": "text", "content": BAD}], "finish_reason": "stop"}])})], "stop"),
    ],
)  # fmt: skip
def test_the_answer_in_an_event_is_checked(
    events: list[tuple[str, dict[str, Any]]], finish_reason: str | None
) -> None:
    told = {"gen_ai.operation.name": "text.completions", **LLM}
    event = event_of(demanding(told), events=events)
    assert (event.parse_error_type, event.finish_reason) == ("schema_invalid", finish_reason)


@pytest.mark.parametrize(
    "attributes",
    [
        {**LANGSMITH, **LLM, "gen_ai.completion": json.dumps({"result": {"value": BAD}})},
        {**LANGSMITH, **LLM, "gen_ai.completion": json.dumps(LANGCHAIN)[:40]},
        {**MLFLOW, "mlflow.spanOutputs": json.dumps({"prediction": BAD})},
        {**LLM, "gen_ai.operation.name": "chat", "response_data": '{"chunk_count": 2}'},
    ],
)
def test_an_unknown_envelope_is_unchecked(attributes: dict[str, Any]) -> None:
    event = event_of(demanding(attributes))
    assert event.kind == "succeeded"
    assert event.unchecked is UncheckedReason.NO_ANSWER


def test_the_scope_alone_tells_an_envelope_of_langsmith() -> None:
    told = {"gen_ai.operation.name": "chat", **LLM, "gen_ai.completion": '{"result": 1}'}
    assert event_of(demanding(told), "langsmith").unchecked is UncheckedReason.NO_ANSWER
    # In others it is what the model wrote.
    assert event_of(demanding(told), "spring").parse_error_type == "schema_invalid"


@pytest.mark.parametrize(
    "attributes",
    [
        {**VERCEL, "ai.response.toolCalls": json.dumps(
            [{"toolCallId": "c", "toolName": "book", "input": '{"days": '}])},
        {**LANGSMITH, **LLM, "gen_ai.completion": json.dumps({"choices": [{"message": {
            "tool_calls": [{"function": {"name": "book", "arguments": '{"days": '}}]}}]})},
        {**MLFLOW, "mlflow.spanOutputs": json.dumps({"choices": [{"message": {
            "tool_calls": [{"function": {"name": "book", "arguments": '{"days": '}}]}}]})},
    ],
)  # fmt: skip
def test_calls_of_tools_in_an_envelope_are_checked(attributes: dict[str, Any]) -> None:
    assert event_of(attributes).parse_error_type == "truncated"


@pytest.mark.parametrize("name", ["function_call", "functionCall", "toolRequest"])
def test_a_part_that_is_named_like_a_call_is_one(name: str) -> None:
    parts = [{name: {"name": "book", "args": {"days": 3}}}]
    told = {**GENKIT, "genkit:output": json.dumps({"message": {"role": "model", "content": parts}})}
    (draft,) = draft_span(read_span(told))
    (call,) = draft.answer.calls
    assert (call.name, json.loads(call.arguments)) == ("book", {"days": 3})


@pytest.mark.parametrize(
    "attributes",
    [
        {**LLM, "gen_ai.operation.name": "chat.completions", **TOKENS},
        {**LLM, "gen_ai.operation.name": "chat", "gcp.vertex.agent.llm_response": json.dumps(
            {"usage_metadata": {"prompt_token_count": 7, "candidates_token_count": 9}})},
        {**GENKIT, "genkit:output": json.dumps({"usage": {"inputTokens": 7, "outputTokens": 9}})},
        {**BRAINTRUST, "braintrust.output_json": "[]"},
        *(
            {**MLFLOW, "mlflow.spanOutputs": json.dumps({**COMPLETION, key: usage})}
            for key, usage in (
                ("usage", {"inputTokens": 7, "outputTokens": 9}),
                ("usageMetadata", {"promptTokenCount": 7, "candidatesTokenCount": 9}),
                ("usage_metadata", {"prompt_token_count": 7, "candidates_token_count": 9}),
            )
        ),
    ],
)  # fmt: skip
def test_tokens_are_read_wherever_a_client_tells_them(attributes: dict[str, Any]) -> None:
    event = event_of(attributes)
    assert (event.input_tokens, event.output_tokens, event.model) == (7, 9, "gpt-4o")


def test_a_bedrock_block_of_a_tool_is_a_call() -> None:
    blocks = [{"reasoningContent": {}}, {"toolUse": {"name": "book", "input": {"days": 3}}}]
    choice = ("gen_ai.choice", {"message": json.dumps(blocks), "finish_reason": "tool_use"})
    (draft,) = draft_span(read_span({"gen_ai.operation.name": "chat", **LLM}, events=[choice]))
    (call,) = draft.answer.calls
    assert (call.name, json.loads(call.arguments)) == ("book", {"days": 3})


def test_vercels_facts_are_read() -> None:
    event = event_of(
        {
            **VERCEL,
            "ai.response.model": "gpt-4o-2024-11-20",
            "ai.response.id": "r-7",
            "ai.response.finishReason": "stop",
            "ai.response.object": '{"days": 3}',
            "ai.settings.temperature": 0.5,
            "ai.settings.maxOutputTokens": 900,
            "ai.usage.inputTokens": 3,
            "ai.usage.outputTokens": 10,
            "ai.usage.outputTokenDetails.reasoningTokens": 4,
            "ai.schema": json.dumps(SCHEMA),
        }
    )
    assert (event.kind, event.node) == ("succeeded", "trip-planner")
    assert (event.model, event.served_model) == ("gpt-4o", "gpt-4o-2024-11-20")
    assert (event.input_tokens, event.output_tokens, event.reasoning_tokens) == (3, 10, 4)
    assert (event.temperature, event.max_output_tokens) == (0.5, 900)
    assert (event.output_mode, event.finish_reason) == ("json", "stop")
    assert event.attributes["response_id"] == "r-7"
    assert event.unchecked is None


def test_langsmiths_and_mlflows_facts_are_read() -> None:
    event = event_of(
        {
            **LANGSMITH,
            "gen_ai.system": "langchain",
            "langsmith.metadata.ls_provider": "anthropic",
            "langsmith.metadata.ls_model_name": "claude-haiku-4",
            "langsmith.metadata.ls_temperature": 0.2,
            "langsmith.metadata.session_id": "s-1",
            "gen_ai.response.finish_reasons": "stop, stop",
        }
    )
    assert (event.provider, event.model) == ("anthropic", "claude-haiku-4")
    assert (event.temperature, event.finish_reason) == (0.2, "stop")
    assert event.attributes["conversation_id"] == "s-1"
    told = {"mlflow.chat.tokenUsage": json.dumps({"input_tokens": 3, "output_tokens": 5})}
    event = event_of({**MLFLOW, "mlflow.llm.provider": '"openai"', **told})
    assert (event.provider, event.model) == ("openai", "gpt-4o")
    assert (event.input_tokens, event.output_tokens) == (3, 5)


THINKING = {"type": "reasoning", "id": "rs_1", "summary": [{"text": "Hm.", "type": "summary_text"}]}
SAID = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": BAD, "annotations": []}],
}
PREAMBLE = {**SAID, "content": [{"type": "output_text", "text": "Let me look."}]}
USED = {"type": "function_call", "name": "book", "arguments": BAD, "call_id": "c_1"}
M = "llm.output_messages.0.message."
REASONING = {
    f"{M}role": "assistant",
    f"{M}contents.0.message_content.type": "reasoning",
    f"{M}contents.0.message_content.text": "A city, and how many days?",
}
OPENINFERENCE = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
LANGFUSE = {"langfuse.observation.type": "generation", "langfuse.observation.model.name": "gpt-4o"}


def output(value: object) -> dict[str, str]:
    """A generation of Langfuse with this output."""
    return {**LANGFUSE, "langfuse.observation.output": json.dumps(value)}


@pytest.mark.parametrize(
    "attributes",
    [
        # OpenInference lists what a model thinks, and blocks of the provider's own tools.
        {
            **OPENINFERENCE,
            **REASONING,
            f"{M}contents.1.message_content.type": "text",
            f"{M}contents.1.message_content.text": BAD,
            f"{M}contents.2.message_content.type": "web_search_tool_result",
            f"{M}contents.2.message_content.text": json.dumps({"content": []}),
        },
        # OpenAI's Responses: the first item is no answer.
        {
            **OPENINFERENCE,
            **REASONING,
            "llm.output_messages.1.message.contents.0.message_content.text": BAD,
            "output.mime_type": "application/json",
            "output.value": json.dumps({"id": "r", "output": [THINKING, SAID]}),
        },
        # Langfuse: items of the Responses, blocks of a message, one of several choices.
        output([THINKING, SAID]),
        output([THINKING, {"type": "web_search_call", "id": "w"}, SAID]),
        output(SAID),
        output([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": BAD}]),
        output([{"role": "assistant", "content": BAD}, {"role": "assistant", "content": "{}"}]),
        {**MLFLOW, "mlflow.spanOutputs": json.dumps([{"type": "text", "text": BAD}])},
    ],
)
def test_the_answer_is_checked_without_what_is_beside_it(attributes: dict[str, Any]) -> None:
    event = event_of(demanding(attributes))
    assert (event.parse_error_type, event.raw_output_preview) == ("schema_invalid", BAD)


@pytest.mark.parametrize(
    "attributes",
    [
        {
            **OPENINFERENCE,
            f"{M}contents.0.message_content.type": "text",
            f"{M}contents.0.message_content.text": "Let me look.",
            "output.mime_type": "application/json",
            "output.value": json.dumps(
                {"object": "response", "output": [THINKING, PREAMBLE, USED]}, separators=(",", ":")
            ),
        },
        output([THINKING, USED]),
        output(USED),
        output({"role": "assistant", "content": None, "function_call": USED}),
        {**MLFLOW, "mlflow.spanOutputs": json.dumps(
            {"choices": [{"message": {"content": None, "function_call": USED}}]})},
    ],
)  # fmt: skip
def test_a_call_beside_what_the_model_thinks_is_one(attributes: dict[str, Any]) -> None:
    (draft,) = draft_span(read_span(attributes))
    (call,) = draft.answer.calls
    assert draft.answer.text in (None, "", "Let me look.")
    assert (call.name, call.arguments) == ("book", BAD)


def test_what_a_model_thinks_alone_is_an_answer_left_out() -> None:
    event = event_of(demanding({**OPENINFERENCE, **REASONING}))
    assert event.unchecked is UncheckedReason.NO_ANSWER


@pytest.mark.parametrize("listed", [[{"type": "book", "text": "x"}], [{"days": 3}], []])
def test_a_list_that_the_model_wrote_is_the_answer(listed: object) -> None:
    event = event_of(demanding(output(listed)))
    assert event.raw_output_preview == json.dumps(listed)


MODEL = {"gen_ai.request.model": "m"}


@pytest.mark.parametrize(
    "attributes",
    [
        # Known names, and unknown ones with what only a call has.
        {"gen_ai.operation.name": "responses", **MODEL},
        {"gen_ai.operation.name": "Chat.Completions", **MODEL},
        {"gen_ai.operation.name": "converse", **MODEL, "gen_ai.usage.output_tokens": 3},
        {"gen_ai.operation.name": "ask", **MODEL, "gen_ai.output.messages": "[]"},
        {"openinference.span.kind": "UNKNOWN", "llm.model_name": "m"},
        {"mlflow.spanType": '"LLM"', "mlflow.llm.model": '"m"'},
        {"ai.operationId": "ai.streamText.doStream", "ai.model.id": "m"},
        {"langsmith.span.kind": "llm", "gen_ai.operation.name": "chat"},
        *(
            {"llm.request.type": name, **MODEL}
            for name in ("acompletion", "atext_completion", "aresponses", "anthropic_messages")
        ),
    ],
)
def test_an_operation_that_calls_a_model_is_an_event(attributes: dict[str, Any]) -> None:
    assert draft_span(read_span(attributes))


@pytest.mark.parametrize(
    "attributes",
    [
        *(
            {"gen_ai.operation.name": name, **MODEL, "gen_ai.usage.output_tokens": 3}
            for name in (
                *("embeddings", "create_embedding", "rerank", "moderations.create", "retrieval"),
                *("invoke_agent", "run_agent", "invoke_workflow", "execute_tool", "chain"),
                *("search_memory", "plan", "transcription", "generate_image"),
            )
        ),
        {"langsmith.span.kind": "prompt", "gen_ai.operation.name": "chat", **MODEL},
        {"ai.operationId": "ai.generateObject", "ai.model.id": "m", "ai.response.object": "{}"},
        {"ai.operationId": "ai.embed.doEmbed", "ai.model.id": "m"},
        {"ai.operationId": "ai.toolCall"},
        {"mlflow.spanType": '"RETRIEVER"', "mlflow.llm.model": '"m"'},
        {"traceloop.span.kind": "workflow", **MODEL},
        {"llm.request.type": "rerank", **MODEL, "gen_ai.usage.output_tokens": 3},
    ],
)
@pytest.mark.parametrize("status", [None, "Error code: 500"])
def test_other_operations_are_no_events_and_not_strange(
    attributes: dict[str, Any], status: str | None
) -> None:
    span = read_span(attributes, status=status)
    assert not draft_span(span)
    assert not is_strange(span)


def test_a_span_that_failed_and_names_a_model_is_a_call() -> None:
    told = {"gen_ai.operation.name": "converse", **MODEL}
    (draft,) = draft_span(read_span(told, status="boom"))
    assert draft.is_error
    assert not draft_span(read_span(told))
    assert is_strange(read_span(told))
    assert draft_span(read_span(MODEL, status="boom"))
    assert not draft_span(read_span({}, status="boom"))


@pytest.mark.parametrize(
    "key",
    [
        *("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages.0.message.content"),
        *("input.value", "ai.prompt", "ai.prompt.messages", "mlflow.spanInputs", "request_data"),
    ],
)
def test_prompts_are_not_read(key: str) -> None:
    assert not is_known(key)


def test_words_of_operations_are_in_lower_case_and_in_one_list() -> None:
    for name in ("calls", "around", "others", "json"):
        assert OPERATIONS[name] == [word.lower() for word in OPERATIONS[name]]
    assert set(OPERATIONS["calls"]).isdisjoint(OPERATIONS["around"])
    assert len({row.name for row in CONVENTIONS}) == len(CONVENTIONS)


def test_an_answer_that_googles_adk_reports_as_an_error_is_a_failure() -> None:
    told = {"error_code": "MALFORMED_FUNCTION_CALL", "error_message": "print(book(3))"}
    event = event_of({**LLM, "gcp.vertex.agent.llm_response": json.dumps(told)})
    assert (event.kind, event.finish_reason) == ("parse_invalid", "MALFORMED_FUNCTION_CALL")


def test_langchains_reason_to_stop_is_read_beside_the_message() -> None:
    message = {"kwargs": {"content": BAD[:9]}}
    generation = {"generation_info": {"finish_reason": "length"}, "message": message}
    told = {"gen_ai.completion": json.dumps({"generations": [[generation]]})}
    event = event_of(demanding({**LANGSMITH, **LLM, **told}))
    assert (event.parse_error_type, event.finish_reason) == ("truncated", "length")
