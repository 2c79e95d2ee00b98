"""OpenTelemetry's semantic conventions for generative AI, and the older names of them."""

from collections.abc import Iterable

from diagnostics.core.otlp.answers import (
    NO_ANSWER,
    Answer,
    first_answer,
    read_message,
)
from diagnostics.core.otlp.call import Call
from diagnostics.core.otlp.picking import Bag, count, decoded, short, slug, temperature
from diagnostics.core.otlp.telemetry import SpanEvent, Value

MODEL_OPERATIONS = frozenset({"chat", "text_completion", "generate_content"})
# Before operations had a name: what kind of request it was.
OLD_REQUESTS = frozenset({"chat", "completion"})
DETAILS = "gen_ai.client.inference.operation.details"
CHOICE = "gen_ai.choice"
COMPLETION = "gen_ai.content.completion"
OUTPUT_MODES = {"text": "text", "json": "json"}
SIGNS = (
    "gen_ai.response.finish_reasons",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "gen_ai.output.messages",
    "gen_ai.completion.0.content",
    "gen_ai.completion",
)


def is_model_call(bag: Bag) -> bool:
    """Say whether a span calls a model: by its operation, or else by what only calls have."""
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
    """Say whether the operation is told and is none that calls a model."""
    return short(bag, "gen_ai.operation.name") is not None and not is_model_call(bag)


def read_call(bag: Bag, events: Iterable[SpanEvent] = ()) -> Call:
    """Read a call from the attributes and events of its span or log record."""
    answer = answer_of(bag, events)
    asked = short(bag, "gen_ai.request.model")
    gave = short(bag, "gen_ai.response.model")
    more = {
        "response_id": short(bag, "gen_ai.response.id"),
        "response_model": gave if gave != asked else None,
        "conversation_id": short(bag, "gen_ai.conversation.id"),
    }
    return Call(
        node=slug(short(bag, "gen_ai.agent.name")),
        provider=short(bag, "gen_ai.provider.name", "gen_ai.system"),
        model=asked or gave,
        finish_reason=_finish_reason(bag) or answer.finish_reason,
        output_mode=OUTPUT_MODES.get(short(bag, "gen_ai.output.type") or ""),
        max_output_tokens=count(bag, "gen_ai.request.max_tokens"),
        temperature=temperature(bag, "gen_ai.request.temperature"),
        input_tokens=count(bag, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        output_tokens=count(bag, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        answer=answer.text,
        attributes={key: value for key, value in more.items() if value is not None},
    )


def answer_of(bag: Bag, events: Iterable[SpanEvent] = ()) -> Answer:
    """Find the first answer: in the attributes, else in the events of the span."""
    if "gen_ai.output.messages" in bag:
        return first_answer(bag["gen_ai.output.messages"])
    if isinstance(text := bag.get("gen_ai.completion.0.content"), str):
        has_calls = not text and _has_tool_calls(bag)
        reason = short(bag, "gen_ai.completion.0.finish_reason")
        return Answer(None if has_calls else text, reason)
    if "gen_ai.completion" in bag:
        return _completion(bag["gen_ai.completion"])
    for event in events:
        found = answer_of_event(event.name, event.attributes, None)
        if found is not NO_ANSWER:
            return found
    return NO_ANSWER


def answer_of_event(name: str, bag: Bag, body: Value) -> Answer:
    """Find the answer in a span's event or in a log record of one."""
    told = {**bag, **body} if isinstance(body, dict) else bag
    if name == DETAILS and "gen_ai.output.messages" in told:
        return first_answer(told["gen_ai.output.messages"])
    if name == COMPLETION and "gen_ai.completion" in told:
        return _completion(told["gen_ai.completion"])
    if name == CHOICE and count(told, "index") in (None, 0):
        return read_message(told)
    return NO_ANSWER


def _completion(value: object) -> Answer:
    """Read the oldest form: messages as JSON, or the bare text."""
    found = decoded(value)
    if isinstance(found, list | dict) and first_answer(found) != NO_ANSWER:
        return first_answer(found)
    return Answer(value, None) if isinstance(value, str) else NO_ANSWER


def _has_tool_calls(bag: Bag) -> bool:
    return any(key.startswith("gen_ai.completion.0.tool_calls.") for key in bag)


def _finish_reason(bag: Bag) -> str | None:
    reasons = decoded(bag.get("gen_ai.response.finish_reasons"))
    if isinstance(reasons, list) and reasons and isinstance(reasons[0], str):
        return short({"": reasons[0]}, "")
    return short(bag, "gen_ai.response.finish_reason", "gen_ai.response.finish_reasons")
