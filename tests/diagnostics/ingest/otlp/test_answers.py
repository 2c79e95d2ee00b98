"""The text of the first answer, out of every shape it comes in."""

import json
from typing import Any

import pytest

from diagnostics.ingest.otlp import genai
from diagnostics.ingest.otlp.answers import Answer, CalledTool, read_reply
from diagnostics.ingest.otlp.conventions import read_call
from diagnostics.ingest.otlp.request_schemas import answer_schema_of, is_structured, tools_of
from diagnostics.ingest.otlp.telemetry import SpanEvent

THOUGHT = {"type": "reasoning", "content": "x"}
TOOL_CALL = {"type": "tool_call", "name": "echo", "arguments": {}}


def message(*parts: object, **more: object) -> dict[str, Any]:
    return {"role": "assistant", "parts": list(parts), **more}


def text(content: str) -> dict[str, str]:
    return {"type": "text", "content": content}


@pytest.mark.parametrize(
    ("attributes", "answer"),
    [
        # GenAI, as it is now.
        ({"gen_ai.output.messages": [message(text("a"), text("b"))]}, "ab"),
        ({"gen_ai.output.messages": [message(text("")), message(text("b"))]}, ""),
        ({"gen_ai.output.messages": [message(THOUGHT, text("a"))]}, "a"),
        ({"gen_ai.output.messages": [message(TOOL_CALL)]}, None),
        ({"gen_ai.output.messages": []}, None),
        ({"gen_ai.output.messages": [message(7, "bare", text("a"))]}, "barea"),
        # Nothing at all is an empty answer; a part whose content was left out is unknown.
        ({"gen_ai.output.messages": [message()]}, ""),
        ({"gen_ai.output.messages": [message({"type": "text"})]}, None),
        ({"gen_ai.output.messages": [message({"type": "blob", "content": "AA=="})]}, None),
        ({"gen_ai.output.messages": [message({"type": {}, "content": "a"}, text("b"))]}, "b"),
        # Half of an emoji, as Python writes it.
        ({"gen_ai.output.messages": r'[{"parts": [{"content": "a\ud83d"}]}]'}, "a\ufffd"),
        ({"gen_ai.output.messages": [message({"type": "refusal", "content": "No."})]}, "No."),
        # Cut by a limit of the exporter: cannot be read, is not judged.
        ({"gen_ai.output.messages": json.dumps([message(text("a"))])[:-5]}, None),
        # Older names.
        ({"gen_ai.completion.0.content": "a", "gen_ai.completion.0.role": "assistant"}, "a"),
        ({"gen_ai.completion.0.content": "", "gen_ai.completion.0.tool_calls.0.name": "e"}, None),
        ({"gen_ai.completion": "plain"}, "plain"),
        ({"gen_ai.completion": '{"steps": []}'}, '{"steps": []}'),
        ({"gen_ai.completion": json.dumps([{"role": "assistant", "content": "a"}])}, "a"),
        ({"gen_ai.completion.0.role": "assistant"}, ""),
        ({}, None),
    ],
)  # fmt: skip
def test_genai_answers(attributes: dict[str, Any], answer: str | None) -> None:
    assert genai.answer_of(attributes).text == answer


@pytest.mark.parametrize(
    ("name", "attributes", "answer"),
    [
        ("gen_ai.choice", {"message": json.dumps({"content": "a"})}, "a"),
        ("gen_ai.choice", {"message": {"content": "a"}, "index": 0}, "a"),
        ("gen_ai.choice", {"content": "a"}, "a"),
        ("gen_ai.choice", {"message": {"content": "", "tool_calls": [{}]}}, None),
        ("gen_ai.choice", {"message": "bare", "index": 1}, None),
        ("gen_ai.content.completion", {"gen_ai.completion": "a"}, "a"),
        (genai.DETAILS, {"gen_ai.output.messages": [message(text("a"))]}, "a"),
        ("exception", {"exception.type": "E"}, None),
    ],
)
def test_answers_in_events_of_a_span(
    name: str, attributes: dict[str, Any], answer: str | None
) -> None:
    assert genai.answer_of({}, [SpanEvent(name, attributes)]).text == answer


C = "message_content.text"
REPLY = {
    "output.value": json.dumps({"id": "r-1", "choices": [{"message": {"refusal": "No."}}]}),
    "output.mime_type": "application/json",
}
M = "llm.output_messages.0.message."


@pytest.mark.parametrize(
    ("attributes", "answer"),
    [
        ({f"{M}content": "a", "output.value": "x"}, "a"),
        ({f"{M}contents.0.{C}": "a", f"{M}contents.1.{C}": "b"}, "ab"),
        ({f"{M}contents.0.{C}": "", f"{M}contents.0.message_content.type": "text"}, ""),
        ({f"{M}contents.0.{C}": "", f"{M}contents.1.message_content.type": "text"}, None),
        ({f"{M}content": "", f"{M}tool_calls.0.tool_call.function.name": "e"}, None),
        ({f"{M}role": "assistant", "output.value": "x"}, ""),
        ({f"{M}content": "__REDACTED__"}, None),
        ({"output.value": "plain"}, "plain"),
        ({"output.value": "plain", "output.mime_type": "text/plain"}, "plain"),
        # The provider's whole reply holds what the messages leave out.
        ({f"{M}role": "assistant", **REPLY}, "No."),
        ({f"{M}content": "a", **REPLY}, "a"),
        # Of a format that nobody knows.
        ({"output.value": "{}", "output.mime_type": "application/json"}, None),
    ],
)  # fmt: skip
def test_openinference_answers(attributes: dict[str, Any], answer: str | None) -> None:
    found = read_call(attributes).answer
    assert (None if found is None else found.text) == answer


def test_openinference_tells_the_call() -> None:
    call = read_call(
        {
            "llm.model_name": "gpt-5-mini",
            "llm.provider": "openai",
            "llm.token_count.prompt": 11,
            "llm.token_count.completion": 7,
            "llm.invocation_parameters": '{"temperature": 0.2, "max_tokens": 512}',
            "session.id": "s-1",
        }
    )
    assert (call.model, call.provider) == ("gpt-5-mini", "openai")
    assert (call.input_tokens, call.output_tokens) == (11, 7)
    assert (call.temperature, call.max_output_tokens) == (0.2, 512)
    assert call.attributes == {"conversation_id": "s-1"}
    assert call.served_model is None


def test_openinference_tells_who_answered_where_it_has_both_names() -> None:
    parameters = {"llm.invocation_parameters": '{"model": "gpt-5-mini"}'}
    call = read_call({"llm.model_name": "gpt-5-mini-2026-10-01", **parameters})
    assert (call.model, call.served_model) == ("gpt-5-mini", "gpt-5-mini-2026-10-01")


@pytest.mark.parametrize(
    ("value", "reason"),
    [(["length"], "length"), ('["stop"]', "stop"), ("stop", "stop"), ([], None), (7, None)],
)
def test_finish_reasons_are_a_list_or_text(value: object, reason: str | None) -> None:
    found = read_call({"gen_ai.response.finish_reasons": value}).finish_reason
    assert found == reason


def test_conventions_complete_each_other() -> None:
    one = read_call({"gen_ai.request.model": "m", "gen_ai.response.id": "r"})
    other = read_call({"llm.model_name": "x", "llm.provider": "p", "session.id": "s"})
    both = one.completed_by(other)
    assert (both.model, both.provider) == ("m", "p")
    assert both.attributes == {"response_id": "r", "conversation_id": "s"}


ARGUMENTS = '{"steps": []}'
FUNCTION = {"name": "plan", "arguments": ARGUMENTS}


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.output.messages": [message({"type": "tool_call", **FUNCTION})]},
        {"gen_ai.output.messages": [message(text("So."), {"type": "tool_call", **FUNCTION})]},
        {
            "gen_ai.output.messages": [
                message({"type": "tool_use", "name": "plan", "input": ARGUMENTS})
            ]
        },
        {
            "gen_ai.completion": json.dumps(
                [{"content": None, "tool_calls": [{"function": FUNCTION}]}]
            )
        },
        {
            "gen_ai.completion.0.tool_calls.0.name": "plan",
            "gen_ai.completion.0.tool_calls.0.arguments": ARGUMENTS,
        },
        {
            "gen_ai.output.messages": [message()],
            "gen_ai.completion.0.function_call.name": "plan",
            "gen_ai.completion.0.function_call.arguments": ARGUMENTS,
        },
        {
            f"{M}tool_calls.0.tool_call.function.name": "plan",
            f"{M}tool_calls.0.tool_call.function.arguments": ARGUMENTS,
        },
        {
            f"{M}function_call_name": "plan",
            f"{M}function_call_arguments_json": ARGUMENTS,
        },
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.output": json.dumps(
                {"role": "assistant", "content": None, "tool_calls": [{"function": FUNCTION}]}
            ),
        },
    ],
)  # fmt: skip
def test_calls_of_tools_are_answers(attributes: dict[str, Any]) -> None:
    found = read_call(attributes).answer
    assert found is not None
    assert found.calls == (CalledTool("plan", ARGUMENTS),)


def test_arguments_that_are_an_object_become_a_text() -> None:
    part = {"type": "tool_call", "name": "plan", "arguments": {"steps": [1]}}
    (call,) = genai.answer_of({"gen_ai.output.messages": [message(part)]}).calls
    assert call.arguments == '{"steps":[1]}'


def test_a_refusal_is_told_apart_from_a_text() -> None:
    parts = message({"type": "refusal", "content": "No."})
    assert genai.answer_of({"gen_ai.output.messages": [parts]}).is_refusal
    assert not genai.answer_of({"gen_ai.output.messages": [message(text("No."))]}).is_refusal


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}, "a"),
        ({"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}, "a"),
        ({"output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}]}, "a"),
        ({"candidates": [{"content": {"parts": [{"text": "a"}]}}]}, "a"),
        # Fields that Google's SDK wrote though they are not set.
        ({"candidates": [{"content": {"parts": [{"text": "a", "functionCall": None}]}}]}, "a"),
        ({"generations": [[{"message": {"kwargs": {"content": "a"}}}]]}, "a"),
        # LangChain after a fault of its own.
        (
            {
                "generations": [[{"message": {"kwargs": {
                    "content": "",
                    "response_metadata": {"body": {"choices": [{"message": {"content": "a"}}]}},
                }}}]]
            },
            "a",
        ),
        ({"something": "else"}, None),
        ([], None),
    ],
)  # fmt: skip
def test_the_reply_of_a_provider_holds_its_answer(reply: object, answer: str | None) -> None:
    found = read_reply(json.dumps(reply))
    told = None if found is None else found.answer
    assert (None if told is None else told.text) == answer


SCHEMA = {"type": "object", "required": ["steps"]}
DEFINITION = {"name": "plan", "parameters": SCHEMA}


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.tool.definitions": json.dumps([DEFINITION])},
        {"gen_ai.tool.definitions": [{"type": "function", "function": DEFINITION}]},
        {"gen_ai.tool.definitions": json.dumps([{"name": "plan", "input_schema": SCHEMA}])},
        {"llm.tools.0.tool.json_schema": json.dumps({"function": DEFINITION})},
        {
            "llm.request.functions.0.name": "plan",
            "llm.request.functions.0.parameters": json.dumps(SCHEMA),
        },
        {
            "model_request_parameters": json.dumps(
                {"output_tools": [{"name": "plan", "parameters_json_schema": SCHEMA}]}
            )
        },
    ],
)
def test_a_request_tells_the_schemas_of_its_tools(attributes: dict[str, Any]) -> None:
    assert tools_of(attributes) == {"plan": SCHEMA}


@pytest.mark.parametrize("value", [7, True, "[}", '{"a": 1}', "8"])
def test_what_is_no_list_offers_no_tools(value: object) -> None:
    parameters = {"function_tools": value, "output_mode": []}
    attributes = {"gen_ai.tool.definitions": value, "model_request_parameters": parameters}
    assert tools_of(attributes) == {}
    assert not is_structured(attributes)


@pytest.mark.parametrize(
    ("attributes", "schema", "is_asked"),
    [
        ({}, None, False),
        (
            {"model_request_parameters": '{"output_mode": "native", "output_object":'
             ' {"json_schema": {"type": "object", "required": ["steps"]}}}'},
            SCHEMA,
            True,
        ),
        (
            {"llm.invocation_parameters": json.dumps({"response_format": {
                "type": "json_schema", "json_schema": {"name": "plan", "schema": SCHEMA}}})},
            SCHEMA,
            True,
        ),
        ({"llm.invocation_parameters": '{"response_format": {"type": "json_object"}}'}, None, True),
        ({"llm.request.structured_output_schema": json.dumps(SCHEMA)}, SCHEMA, True),
        ({"model_request_parameters": '{"output_mode": "text"}'}, None, False),
    ],
)  # fmt: skip
def test_a_request_tells_the_answer_it_wants(
    attributes: dict[str, Any], schema: object, is_asked: bool
) -> None:
    assert answer_schema_of(attributes) == schema
    assert is_structured(attributes) is is_asked


def test_the_model_of_a_failed_call_is_the_one_that_was_asked() -> None:
    call = read_call({"llm.invocation_parameters": '{"model": "gpt-5-mini"}'})
    assert call.model == "gpt-5-mini"


def test_the_node_of_a_graph_and_the_version_of_a_prompt_are_read() -> None:
    told = {"metadata": '{"langgraph_node": "planner"}', "llm.prompt_template.version": "v5"}
    call = read_call(told)
    assert (call.node, call.prompt_version) == ("planner", "v5")
    named = {"traceloop.association.properties.langgraph_node": "planner"}
    assert read_call(named).node == "planner"


def test_langfuse_tells_the_call() -> None:
    name = "langfuse.observation."
    call = read_call(
        {
            f"{name}model.name": "gpt-5-mini",
            f"{name}model.parameters": '{"temperature": 1, "max_tokens": "Infinity"}',
            f"{name}usage_details": '{"prompt_tokens": 11, "completion_tokens": 7}',
            f"{name}metadata.finish_reason": '"length"',
            f"{name}prompt.version": 5,
            f"{name}output": '{"steps": []}',
        }
    )
    assert (call.model, call.prompt_version, call.finish_reason) == ("gpt-5-mini", "5", "length")
    assert (call.input_tokens, call.output_tokens, call.temperature) == (11, 7, 1.0)
    assert call.answer == Answer('{"steps": []}')
