"""OpenInference, the attributes of Phoenix and its instrumentations."""

from collections.abc import Iterator

from diagnostics.ingest.otlp.answers import (
    Answer,
    CalledTool,
    ProviderReply,
    read_reply,
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
from diagnostics.ingest.otlp.telemetry import Span

MESSAGE = "llm.output_messages.0.message."
JSON_TYPE = "application/json"
MAX_CONTENTS = 100
NO_REPLY = ProviderReply(Answer())
LLAMA_INDEX = "openinference.instrumentation.llama_index"
# Methods of LlamaIndex that call a model, such as `astream_chat`; others call these.
ASKING_METHODS = ("chat", "complete")
STRUCTURED_MODEL = "StructuredLLM."


def has_attributes(attributes: AttributeMap) -> bool:
    """Whether any attribute is of this convention."""
    return any(key.startswith(("llm.", "openinference.")) for key in attributes)


def is_model_call(attributes: AttributeMap) -> bool:
    """Whether a span calls a model: by its kind, or else by naming one."""
    kind = short(attributes, "openinference.span.kind")
    if kind is not None:
        return kind.upper() == "LLM"
    return short(attributes, "llm.model_name") is not None


def is_step(span: Span) -> bool:
    """Whether a span is a LlamaIndex method around or before a call that is reported as one."""
    is_asking = span.name.endswith(ASKING_METHODS) and not span.name.startswith(STRUCTURED_MODEL)
    return span.scope == LLAMA_INDEX and not is_asking


def read_call(attributes: AttributeMap) -> ModelCall:
    """Read a call from the attributes of its span.

    What its messages omit is read from `output.value`, the provider's whole reply.
    """
    parameters = decoded(attributes.get("llm.invocation_parameters"))
    invocation = parameters if isinstance(parameters, dict) else {}
    # Instrumentations overwrite the name with that of the response, but keep the parameters.
    requested = short(attributes, "llm.request.model_name") or short(invocation, "model")
    response_model = short(attributes, "llm.response.model_name", "llm.model_name")
    answer = _answer(attributes)
    reply = NO_REPLY if answer is not None and answer != Answer("") else _reply(attributes)
    extra = {"conversation_id": short(attributes, "session.id"), "response_id": reply.response_id}
    return ModelCall(
        node=slug(_graph_node(attributes) or short(attributes, "graph.node.id")),
        provider=short(attributes, "llm.provider", "llm.system"),
        model=requested or response_model,
        finish_reason=short(attributes, "llm.finish_reason", f"{MESSAGE}finish_reason")
        or reply.answer.finish_reason,
        max_output_tokens=count(invocation, "max_completion_tokens", "max_tokens"),
        temperature=temperature(invocation, "temperature"),
        input_tokens=_first_known(count(attributes, "llm.token_count.prompt"), reply.input_tokens),
        output_tokens=_first_known(
            count(attributes, "llm.token_count.completion"), reply.output_tokens
        ),
        reasoning_tokens=count(attributes, "llm.token_count.completion_details.reasoning"),
        served_model=response_model if requested else None,
        prompt_version=short_or_number(attributes, "llm.prompt_template.version"),
        answer=_best_answer(answer, reply.answer),
        attributes={key: value for key, value in extra.items() if value is not None},
    )


def _answer(attributes: AttributeMap) -> Answer | None:
    """Find the first answer; a message with a role alone is an empty one."""
    calls = tuple(_calls(attributes))
    content = attributes.get(f"{MESSAGE}content")
    texts = [content] if isinstance(content, str) else list(_contents(attributes))
    if texts:
        text = "".join(texts)
        return Answer(None if not text and _is_left_out(attributes) else shown(text), calls)
    if calls or any(key.startswith(MESSAGE) for key in attributes):
        return Answer(None if calls or _is_left_out(attributes) else "", calls)
    value = attributes.get("output.value")
    is_plain = short(attributes, "output.mime_type") != JSON_TYPE
    return Answer(shown(value)) if isinstance(value, str) and is_plain else None


def _best_answer(answer: Answer | None, replied: Answer) -> Answer | None:
    """Return the answer in the reply if it is known, else the one in the messages."""
    return replied if replied.is_known else answer


def _reply(attributes: AttributeMap) -> ProviderReply:
    if short(attributes, "output.mime_type") != JSON_TYPE:
        return NO_REPLY
    return read_reply(attributes.get("output.value")) or NO_REPLY


def _is_left_out(attributes: AttributeMap) -> bool:
    """Whether contents or tool calls were omitted."""
    return any(
        key.startswith((f"{MESSAGE}contents.", f"{MESSAGE}tool_calls.")) for key in attributes
    )


def _contents(attributes: AttributeMap) -> Iterator[str]:
    for index in range(MAX_CONTENTS):
        text = attributes.get(f"{MESSAGE}contents.{index}.message_content.text")
        if isinstance(text, str):
            yield text


def _calls(attributes: AttributeMap) -> Iterator[CalledTool]:
    for index in range(MAX_CONTENTS):
        key = f"{MESSAGE}tool_calls.{index}.tool_call.function."
        if f"{key}arguments" not in attributes:
            break
        yield tool_call(attributes.get(f"{key}name"), attributes[f"{key}arguments"])
    if f"{MESSAGE}function_call_arguments_json" in attributes:
        name = attributes.get(f"{MESSAGE}function_call_name")
        yield tool_call(name, attributes[f"{MESSAGE}function_call_arguments_json"])


def _graph_node(attributes: AttributeMap) -> str | None:
    """Return the LangGraph node of a call."""
    metadata = decoded(attributes.get("metadata"))
    return short(metadata, "langgraph_node") if isinstance(metadata, dict) else None


def _first_known(value: int | None, replied: int | None) -> int | None:
    return replied if value is None else value
