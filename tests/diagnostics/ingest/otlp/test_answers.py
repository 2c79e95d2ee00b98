"""The text of the first answer, out of every shape it comes in."""

import json
from typing import Any

import pytest

from diagnostics.ingest.otlp import genai, openinference
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
        ({"gen_ai.output.messages": [message()]}, None),
        # Cut by a limit of the exporter: cannot be read, is not judged.
        ({"gen_ai.output.messages": json.dumps([message(text("a"))])[:-5]}, None),
        # Older names.
        ({"gen_ai.completion.0.content": "a", "gen_ai.completion.0.role": "assistant"}, "a"),
        ({"gen_ai.completion.0.content": "", "gen_ai.completion.0.tool_calls.0.name": "e"}, None),
        ({"gen_ai.completion": "plain"}, "plain"),
        ({"gen_ai.completion": '{"steps": []}'}, '{"steps": []}'),
        ({"gen_ai.completion": json.dumps([{"role": "assistant", "content": "a"}])}, "a"),
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
M = "llm.output_messages.0.message."


@pytest.mark.parametrize(
    ("attributes", "answer"),
    [
        ({f"{M}content": "a", "output.value": "x"}, "a"),
        ({f"{M}contents.0.{C}": "a", f"{M}contents.1.{C}": "b"}, "ab"),
        ({f"{M}content": "", f"{M}tool_calls.0.tool_call.function.name": "e"}, None),
        ({f"{M}role": "assistant", "output.value": "x"}, None),
        ({"output.value": "plain"}, "plain"),
        ({"output.value": "plain", "output.mime_type": "text/plain"}, "plain"),
        # The provider's whole reply, not the answer.
        ({"output.value": "{}", "output.mime_type": "application/json"}, None),
    ],
)  # fmt: skip
def test_openinference_answers(attributes: dict[str, Any], answer: str | None) -> None:
    assert openinference.read_call(attributes).answer == answer


def test_openinference_tells_the_call() -> None:
    call = openinference.read_call(
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


@pytest.mark.parametrize(
    ("value", "reason"),
    [(["length"], "length"), ('["stop"]', "stop"), ("stop", "stop"), ([], None), (7, None)],
)
def test_finish_reasons_are_a_list_or_text(value: object, reason: str | None) -> None:
    found = genai.read_call({"gen_ai.response.finish_reasons": value}).finish_reason
    assert found == reason


def test_conventions_complete_each_other() -> None:
    one = genai.read_call({"gen_ai.request.model": "m", "gen_ai.response.id": "r"})
    other = openinference.read_call({"llm.model_name": "x", "llm.provider": "p", "session.id": "s"})
    both = one.completed_by(other)
    assert (both.model, both.provider) == ("m", "p")
    assert both.attributes == {"response_id": "r", "conversation_id": "s"}
