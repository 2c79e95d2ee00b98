"""OpenTelemetry's semantic conventions for generative AI, and the older names of them."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from diagnostics.ingest.otlp.attributes import (
    Bag,
    ModelCall,
    count,
    decoded,
    short,
    slug,
    temperature,
)
from diagnostics.ingest.otlp.telemetry import SpanEvent, Value

CONTENTS = ("parts", "content", "text")


class MessageText(NamedTuple):
    """The text of one answer (None: it has none, a tool call for instance), and why it ended."""

    text: str | None
    finish_reason: str | None


NO_ANSWER = MessageText(None, None)


def first_answer(messages: object) -> MessageText:
    """Read the first of a list of messages, structured or as JSON text."""
    found = decoded(messages)
    if isinstance(found, list):
        found = found[0] if found else None
    return read_message(found)


def read_message(message: object) -> MessageText:
    """Read one message: parts, a list of contents, plain content or a bare text.

    `{"message": {...}, "finish_reason": ...}`, as choices are told, is opened.
    """
    if isinstance(message, str):
        return MessageText(message, None)
    if not isinstance(message, Mapping):
        return NO_ANSWER
    reason = short(message, "finish_reason")
    inner = decoded(message.get("message"))
    if isinstance(inner, Mapping):
        return MessageText(_text_of(inner), reason)
    return MessageText(_text_of(message), reason)


def _text_of(message: Mapping[str, Any]) -> str | None:
    for name in CONTENTS:
        content = message.get(name)
        if isinstance(content, str):
            return None if not content and message.get("tool_calls") else content
        if isinstance(content, list):
            texts = [_part_text(part) for part in content]
            told = [text for text in texts if text is not None]
            return "".join(told) if told else None
    return None


def _part_text(part: object) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type", "text") not in ("text", "output_text"):
        return None
    text = part.get("content", part.get("text"))
    return text if isinstance(text, str) else None


MODEL_OPERATIONS = frozenset({"chat", "text_completion", "generate_content"})
# Before operations had a name: what kind of request it was.
OLD_REQUESTS = frozenset({"chat", "completion"})
DETAILS = "gen_ai.client.inference.operation.details"
CHOICE = "gen_ai.choice"
COMPLETION = "gen_ai.content.completion"
OUTPUT_MODES = {"text": "text", "json": "json"}
FINGERPRINTS = (
    "openai.response.system_fingerprint",
    "gen_ai.openai.response.system_fingerprint",
    "gen_ai.openai.system_fingerprint",
)
REASONING = (
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.reasoning_tokens",
    "llm.usage.reasoning_tokens",
)
SIGNS = (
    "gen_ai.response.finish_reasons",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "gen_ai.output.messages",
    "gen_ai.completion.0.content",
    "gen_ai.completion",
)


def is_model_call(bag: Bag) -> bool:
    """Whether a span calls a model: by its operation, or else by what only calls have."""
    operation = short(bag, "gen_ai.operation.name")
    if operation is not None:
        return operation.lower() in MODEL_OPERATIONS
    if short(bag, "gen_ai.request.model", "gen_ai.response.model") is None:
        return False
    request = short(bag, "llm.request.type")
    if request is not None:
        return request.lower() in OLD_REQUESTS
    return any(key in bag for key in SIGNS)


def denies(bag: Bag) -> bool:
    """Whether the operation is told and is none that calls a model."""
    return short(bag, "gen_ai.operation.name") is not None and not is_model_call(bag)


def read_call(bag: Bag, events: Iterable[SpanEvent] = ()) -> ModelCall:
    """Read a call from the attributes and events of its span or log record."""
    answer = answer_of(bag, events)
    asked = short(bag, "gen_ai.request.model")
    gave = short(bag, "gen_ai.response.model")
    more = {
        "response_id": short(bag, "gen_ai.response.id"),
        "conversation_id": short(bag, "gen_ai.conversation.id"),
    }
    return ModelCall(
        node=slug(short(bag, "gen_ai.agent.name")),
        provider=short(bag, "gen_ai.provider.name", "gen_ai.system"),
        model=asked or gave,
        finish_reason=_finish_reason(bag) or answer.finish_reason,
        output_mode=OUTPUT_MODES.get(short(bag, "gen_ai.output.type") or ""),
        max_output_tokens=count(bag, "gen_ai.request.max_tokens"),
        temperature=temperature(bag, "gen_ai.request.temperature"),
        input_tokens=count(bag, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        output_tokens=count(bag, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        reasoning_tokens=count(bag, *REASONING),
        served_model=gave,
        system_fingerprint=short(bag, *FINGERPRINTS),
        answer=answer.text,
        attributes={key: value for key, value in more.items() if value is not None},
    )


def answer_of(bag: Bag, events: Iterable[SpanEvent] = ()) -> MessageText:
    """Find the first answer: in the attributes, else in the events of the span."""
    if "gen_ai.output.messages" in bag:
        return first_answer(bag["gen_ai.output.messages"])
    if isinstance(text := bag.get("gen_ai.completion.0.content"), str):
        has_calls = not text and _has_tool_calls(bag)
        reason = short(bag, "gen_ai.completion.0.finish_reason")
        return MessageText(None if has_calls else text, reason)
    if "gen_ai.completion" in bag:
        return _completion(bag["gen_ai.completion"])
    for event in events:
        found = answer_of_event(event.name, event.attributes, None)
        if found is not NO_ANSWER:
            return found
    return NO_ANSWER


def answer_of_event(name: str, bag: Bag, body: Value) -> MessageText:
    """Find the answer in a span's event or in a log record of one."""
    told = {**bag, **body} if isinstance(body, dict) else bag
    if name == DETAILS and "gen_ai.output.messages" in told:
        return first_answer(told["gen_ai.output.messages"])
    if name == COMPLETION and "gen_ai.completion" in told:
        return _completion(told["gen_ai.completion"])
    if name == CHOICE and count(told, "index") in (None, 0):
        return read_message(told)
    return NO_ANSWER


def _completion(value: object) -> MessageText:
    """Read the oldest form: messages as JSON, or the bare text."""
    found = decoded(value)
    if isinstance(found, list | dict) and first_answer(found) != NO_ANSWER:
        return first_answer(found)
    return MessageText(value, None) if isinstance(value, str) else NO_ANSWER


def _has_tool_calls(bag: Bag) -> bool:
    return any(key.startswith("gen_ai.completion.0.tool_calls.") for key in bag)


def _finish_reason(bag: Bag) -> str | None:
    reasons = decoded(bag.get("gen_ai.response.finish_reasons"))
    if isinstance(reasons, list) and reasons and isinstance(reasons[0], str):
        return short({"": reasons[0]}, "")
    return short(bag, "gen_ai.response.finish_reason", "gen_ai.response.finish_reasons")
