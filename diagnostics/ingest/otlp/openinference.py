"""OpenInference: the attributes that Phoenix and its instrumentations write."""

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
    Bag,
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
# Methods of LlamaIndex's models that ask a model, `astream_chat` for one; others call these.
ASKING_METHODS = ("chat", "complete")
STRUCTURED_MODEL = "StructuredLLM."


def is_spoken(bag: Bag) -> bool:
    """Whether any attribute is of this convention."""
    return any(key.startswith(("llm.", "openinference.")) for key in bag)


def is_model_call(bag: Bag) -> bool:
    """Whether a span calls a model: by its kind, or else by naming one."""
    kind = short(bag, "openinference.span.kind")
    if kind is not None:
        return kind.upper() == "LLM"
    return short(bag, "llm.model_name") is not None


def is_step(span: Span) -> bool:
    """Whether a span is a method of LlamaIndex around a call, or before it, that is told as one."""
    is_asking = span.name.endswith(ASKING_METHODS) and not span.name.startswith(STRUCTURED_MODEL)
    return span.scope == LLAMA_INDEX and not is_asking


def read_call(bag: Bag) -> ModelCall:
    """Read a call from the attributes of its span.

    What its messages leave out is looked for in `output.value`, the provider's whole reply.
    """
    parameters = decoded(bag.get("llm.invocation_parameters"))
    asked = parameters if isinstance(parameters, dict) else {}
    # Instrumentations replace the name by that of the response, and keep the parameters.
    requested = short(bag, "llm.request.model_name") or short(asked, "model")
    named = short(bag, "llm.response.model_name", "llm.model_name")
    answer = _answer(bag)
    reply = NO_REPLY if answer is not None and answer != Answer("") else _reply(bag)
    more = {"conversation_id": short(bag, "session.id"), "response_id": reply.response_id}
    return ModelCall(
        node=slug(_graph_node(bag) or short(bag, "graph.node.id")),
        provider=short(bag, "llm.provider", "llm.system"),
        model=requested or named,
        finish_reason=short(bag, "llm.finish_reason", f"{MESSAGE}finish_reason")
        or reply.answer.finish_reason,
        max_output_tokens=count(asked, "max_completion_tokens", "max_tokens"),
        temperature=temperature(asked, "temperature"),
        input_tokens=_or_else(count(bag, "llm.token_count.prompt"), reply.input_tokens),
        output_tokens=_or_else(count(bag, "llm.token_count.completion"), reply.output_tokens),
        reasoning_tokens=count(bag, "llm.token_count.completion_details.reasoning"),
        served_model=named if requested else None,
        prompt_version=short_or_number(bag, "llm.prompt_template.version"),
        answer=_better(answer, reply.answer),
        attributes={key: value for key, value in more.items() if value is not None},
    )


def _answer(bag: Bag) -> Answer | None:
    """Find the first answer; a message of a role and nothing else is an empty one."""
    calls = tuple(_calls(bag))
    content = bag.get(f"{MESSAGE}content")
    texts = [content] if isinstance(content, str) else list(_contents(bag))
    if texts:
        text = "".join(texts)
        return Answer(None if not text and _is_left_out(bag) else shown(text), calls)
    if calls or any(key.startswith(MESSAGE) for key in bag):
        return Answer(None if calls or _is_left_out(bag) else "", calls)
    value = bag.get("output.value")
    is_plain = short(bag, "output.mime_type") != JSON_TYPE
    return Answer(shown(value)) if isinstance(value, str) and is_plain else None


def _better(told: Answer | None, replied: Answer) -> Answer | None:
    """Return what the reply tells where the messages tell nothing or an empty answer."""
    return replied if replied.is_told else told


def _reply(bag: Bag) -> ProviderReply:
    if short(bag, "output.mime_type") != JSON_TYPE:
        return NO_REPLY
    return read_reply(bag.get("output.value")) or NO_REPLY


def _is_left_out(bag: Bag) -> bool:
    """Whether there are contents, or calls, that are not told."""
    return any(key.startswith((f"{MESSAGE}contents.", f"{MESSAGE}tool_calls.")) for key in bag)


def _contents(bag: Bag) -> Iterator[str]:
    for index in range(MAX_CONTENTS):
        text = bag.get(f"{MESSAGE}contents.{index}.message_content.text")
        if isinstance(text, str):
            yield text


def _calls(bag: Bag) -> Iterator[CalledTool]:
    for index in range(MAX_CONTENTS):
        key = f"{MESSAGE}tool_calls.{index}.tool_call.function."
        if f"{key}arguments" not in bag:
            break
        yield tool_call(bag.get(f"{key}name"), bag[f"{key}arguments"])
    if f"{MESSAGE}function_call_arguments_json" in bag:
        name = bag.get(f"{MESSAGE}function_call_name")
        yield tool_call(name, bag[f"{MESSAGE}function_call_arguments_json"])


def _graph_node(bag: Bag) -> str | None:
    """Name the node of a LangGraph that a call was made in."""
    metadata = decoded(bag.get("metadata"))
    return short(metadata, "langgraph_node") if isinstance(metadata, dict) else None


def _or_else(told: int | None, replied: int | None) -> int | None:
    return replied if told is None else told
