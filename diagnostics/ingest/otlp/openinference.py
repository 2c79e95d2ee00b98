"""OpenInference: the attributes that Phoenix and its instrumentations write."""

from collections.abc import Iterator

from diagnostics.ingest.otlp.attributes import (
    Bag,
    ModelCall,
    count,
    decoded,
    short,
    slug,
    temperature,
)

MESSAGE = "llm.output_messages.0.message."
JSON_TYPE = "application/json"
MAX_CONTENTS = 100


def is_spoken(bag: Bag) -> bool:
    """Whether any attribute is of this convention."""
    return any(key.startswith(("llm.", "openinference.")) for key in bag)


def is_model_call(bag: Bag) -> bool:
    """Whether a span calls a model: by its kind, or else by naming one."""
    kind = short(bag, "openinference.span.kind")
    if kind is not None:
        return kind.upper() == "LLM"
    return short(bag, "llm.model_name") is not None


def read_call(bag: Bag) -> ModelCall:
    """Read a call from the attributes of its span."""
    parameters = decoded(bag.get("llm.invocation_parameters"))
    asked = parameters if isinstance(parameters, dict) else {}
    session = short(bag, "session.id")
    return ModelCall(
        node=slug(short(bag, "graph.node.id")),
        provider=short(bag, "llm.provider", "llm.system"),
        model=short(bag, "llm.model_name"),
        finish_reason=short(bag, "llm.finish_reason", f"{MESSAGE}finish_reason"),
        max_output_tokens=count(asked, "max_completion_tokens", "max_tokens"),
        temperature=temperature(asked, "temperature"),
        input_tokens=count(bag, "llm.token_count.prompt"),
        output_tokens=count(bag, "llm.token_count.completion"),
        reasoning_tokens=count(bag, "llm.token_count.completion_details.reasoning"),
        answer=_answer(bag),
        attributes={"conversation_id": session} if session else {},
    )


def _answer(bag: Bag) -> str | None:
    """Find the text of the first answer.

    `output.value` counts only as plain text: as JSON it is the provider's whole reply.
    """
    content = bag.get(f"{MESSAGE}content")
    if isinstance(content, str):
        return None if not content and _has_tool_calls(bag) else content
    texts = list(_contents(bag))
    if texts:
        return "".join(texts)
    has_messages = any(key.startswith(MESSAGE) for key in bag)
    value = bag.get("output.value")
    is_plain = short(bag, "output.mime_type") != JSON_TYPE
    return value if isinstance(value, str) and is_plain and not has_messages else None


def _contents(bag: Bag) -> Iterator[str]:
    for index in range(MAX_CONTENTS):
        text = bag.get(f"{MESSAGE}contents.{index}.message_content.text")
        if isinstance(text, str):
            yield text


def _has_tool_calls(bag: Bag) -> bool:
    return any(key.startswith(f"{MESSAGE}tool_calls.") for key in bag)
