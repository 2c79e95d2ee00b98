"""OpenTelemetry's semantic conventions for generative AI, and the older names of them."""

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
    Bag,
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
# Before operations had a name: what kind of request it was.
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
        node=slug(short(bag, "gen_ai.agent.name", *GRAPH_NODES)),
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
        prompt_version=short_or_number(bag, *PROMPT_VERSIONS),
        answer=answer if answer.is_told or answer.is_refusal else None,
        attributes={key: value for key, value in more.items() if value is not None},
    )


def answer_of(bag: Bag, events: Iterable[SpanEvent] = ()) -> Answer:
    """Find the first answer: in the attributes, else in the events of the span."""
    if "gen_ai.output.messages" in bag:
        told = first_answer(bag["gen_ai.output.messages"])
        # LiteLLM tells calls of tools under the older names alone.
        calls = () if told.text or told.calls else tuple(_indexed_calls(bag))
        return told._replace(text=None, calls=calls) if calls else told
    if any(key.startswith(FIRST) for key in bag):
        return _indexed(bag)
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
    return Answer(shown(value)) if isinstance(value, str) else NO_ANSWER


def _indexed(bag: Bag) -> Answer:
    """Read `gen_ai.completion.0.*`; a role and nothing else is an empty answer."""
    calls, reason = tuple(_indexed_calls(bag)), short(bag, f"{FIRST}finish_reason")
    is_called = any(
        key.startswith((f"{FIRST}tool_calls.", f"{FIRST}function_call.")) for key in bag
    )
    text = bag.get(f"{FIRST}content")
    if isinstance(text, str):
        return Answer(None if is_called and not text else shown(text), calls, reason)
    is_empty = f"{FIRST}role" in bag and not is_called
    return Answer("" if is_empty else None, calls, reason)


def _indexed_calls(bag: Bag) -> Iterator[CalledTool]:
    for index in range(MAX_CALLS):
        key = f"{FIRST}tool_calls.{index}."
        if f"{key}arguments" in bag:
            yield tool_call(bag.get(f"{key}name"), bag[f"{key}arguments"])
        elif f"{key}name" not in bag:
            break
    if f"{FIRST}function_call.arguments" in bag:
        name = bag.get(f"{FIRST}function_call.name")
        yield tool_call(name, bag[f"{FIRST}function_call.arguments"])


def _finish_reason(bag: Bag) -> str | None:
    reasons = decoded(bag.get("gen_ai.response.finish_reasons"))
    if isinstance(reasons, list) and reasons and isinstance(reasons[0], str):
        return short({"": reasons[0]}, "")
    return short(bag, *FINISH_REASONS)
