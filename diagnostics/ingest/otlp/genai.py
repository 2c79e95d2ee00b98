"""OpenTelemetry's semantic conventions for generative AI, including older names."""

from collections.abc import Iterable, Iterator

from diagnostics.ingest.otlp.answers import (
    NO_ANSWER,
    Answer,
    CalledTool,
    first_answer,
    read_message,
    shown,
    tool_call,
)
from diagnostics.ingest.otlp.attributes import (
    AttributeMap,
    count,
    decoded,
    short,
    short_or_number,
    slug,
    temperature,
)
from diagnostics.ingest.otlp.model_call import ModelCall
from diagnostics.ingest.otlp.telemetry import SpanEvent, Value

MODEL_OPERATIONS = frozenset({"chat", "text_completion", "generate_content"})
# The type of request, in conventions before operation names.
OLD_REQUESTS = frozenset({"chat", "completion"})
DETAILS = "gen_ai.client.inference.operation.details"
CHOICE = "gen_ai.choice"
COMPLETION = "gen_ai.content.completion"
# Of the answers only the first is read.
FIRST = "gen_ai.completion.0."
MAX_CALLS = 100
OUTPUT_MODES = {"text": "text", "json": "json"}
FINGERPRINTS = (
    "openai.response.system_fingerprint",
    "gen_ai.openai.response.system_fingerprint",
    "gen_ai.openai.system_fingerprint",
)
FINISH_REASONS = (
    "gen_ai.response.finish_reason",
    "gen_ai.response.finish_reasons",
    # The SDK's own spans.
    "anthropic.message.stop_reason",
)
GRAPH_NODES = ("langgraph_node", "traceloop.association.properties.langgraph_node")
PROMPT_VERSIONS = ("gen_ai.prompt.version", "traceloop.prompt.version")
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


def is_model_call(attributes: AttributeMap) -> bool:
    """Whether a span calls a model: by its operation, else by attributes that only calls have."""
    operation = short(attributes, "gen_ai.operation.name")
    if operation is not None:
        return operation.lower() in MODEL_OPERATIONS
    if short(attributes, "gen_ai.request.model", "gen_ai.response.model") is None:
        return False
    request = short(attributes, "llm.request.type")
    if request is not None:
        return request.lower() in OLD_REQUESTS
    return any(key in attributes for key in SIGNS)


def denies(attributes: AttributeMap) -> bool:
    """Whether the span names an operation that does not call a model."""
    return short(attributes, "gen_ai.operation.name") is not None and not is_model_call(attributes)


def read_call(attributes: AttributeMap, events: Iterable[SpanEvent] = ()) -> ModelCall:
    """Read a call from the attributes and events of its span or log record."""
    answer = answer_of(attributes, events)
    requested = short(attributes, "gen_ai.request.model")
    served = short(attributes, "gen_ai.response.model")
    extra = {
        "response_id": short(attributes, "gen_ai.response.id"),
        "conversation_id": short(attributes, "gen_ai.conversation.id"),
    }
    return ModelCall(
        node=slug(short(attributes, "gen_ai.agent.name", *GRAPH_NODES)),
        provider=short(attributes, "gen_ai.provider.name", "gen_ai.system"),
        model=requested or served,
        finish_reason=_finish_reason(attributes) or answer.finish_reason,
        output_mode=OUTPUT_MODES.get(short(attributes, "gen_ai.output.type") or ""),
        max_output_tokens=count(attributes, "gen_ai.request.max_tokens"),
        temperature=temperature(attributes, "gen_ai.request.temperature"),
        input_tokens=count(attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        output_tokens=count(
            attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"
        ),
        reasoning_tokens=count(attributes, *REASONING),
        served_model=served,
        system_fingerprint=short(attributes, *FINGERPRINTS),
        prompt_version=short_or_number(attributes, *PROMPT_VERSIONS),
        answer=answer if answer.is_known or answer.is_refusal else None,
        attributes={key: value for key, value in extra.items() if value is not None},
    )


def answer_of(attributes: AttributeMap, events: Iterable[SpanEvent] = ()) -> Answer:
    """Find the first answer: in the attributes, else in the events of the span."""
    if "gen_ai.output.messages" in attributes:
        answer = first_answer(attributes["gen_ai.output.messages"])
        # LiteLLM reports tool calls under the older names only.
        calls = () if answer.text or answer.calls else tuple(_indexed_calls(attributes))
        return answer._replace(text=None, calls=calls) if calls else answer
    if any(key.startswith(FIRST) for key in attributes):
        return _indexed(attributes)
    if "gen_ai.completion" in attributes:
        return _completion(attributes["gen_ai.completion"])
    for event in events:
        event_answer = answer_of_event(event.name, event.attributes, None)
        if event_answer is not NO_ANSWER:
            return event_answer
    return NO_ANSWER


def answer_of_event(name: str, attributes: AttributeMap, body: Value) -> Answer:
    """Find the answer in a span's event or in a log record of one."""
    fields = {**attributes, **body} if isinstance(body, dict) else attributes
    if name == DETAILS and "gen_ai.output.messages" in fields:
        return first_answer(fields["gen_ai.output.messages"])
    if name == COMPLETION and "gen_ai.completion" in fields:
        return _completion(fields["gen_ai.completion"])
    if name == CHOICE and count(fields, "index") in (None, 0):
        return read_message(fields)
    return NO_ANSWER


def _completion(value: object) -> Answer:
    """Read the oldest form: messages as JSON, or the bare text."""
    parsed = decoded(value)
    if isinstance(parsed, list | dict) and first_answer(parsed) != NO_ANSWER:
        return first_answer(parsed)
    return Answer(shown(value)) if isinstance(value, str) else NO_ANSWER


def _indexed(attributes: AttributeMap) -> Answer:
    """Read `gen_ai.completion.0.*`; a role alone is an empty answer."""
    calls, reason = tuple(_indexed_calls(attributes)), short(attributes, f"{FIRST}finish_reason")
    is_called = any(
        key.startswith((f"{FIRST}tool_calls.", f"{FIRST}function_call.")) for key in attributes
    )
    text = attributes.get(f"{FIRST}content")
    if isinstance(text, str):
        return Answer(None if is_called and not text else shown(text), calls, reason)
    is_empty = f"{FIRST}role" in attributes and not is_called
    return Answer("" if is_empty else None, calls, reason)


def _indexed_calls(attributes: AttributeMap) -> Iterator[CalledTool]:
    for index in range(MAX_CALLS):
        key = f"{FIRST}tool_calls.{index}."
        if f"{key}arguments" in attributes:
            yield tool_call(attributes.get(f"{key}name"), attributes[f"{key}arguments"])
        elif f"{key}name" not in attributes:
            break
    if f"{FIRST}function_call.arguments" in attributes:
        name = attributes.get(f"{FIRST}function_call.name")
        yield tool_call(name, attributes[f"{FIRST}function_call.arguments"])


def _finish_reason(attributes: AttributeMap) -> str | None:
    reasons = decoded(attributes.get("gen_ai.response.finish_reasons"))
    if isinstance(reasons, list) and reasons and isinstance(reasons[0], str):
        return short({"": reasons[0]}, "")
    return short(attributes, *FINISH_REASONS)
