"""The attributes that Langfuse's SDK writes for a generation."""

from diagnostics.ingest.otlp.answers import Answer, first_answer, shown
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

OBSERVATION = "langfuse.observation."
CALLS = frozenset({"generation"})
ERROR_LEVEL = "ERROR"


def is_model_call(attributes: AttributeMap) -> bool:
    """Whether an observation is a generation."""
    return short(attributes, f"{OBSERVATION}type") in CALLS


def is_error(attributes: AttributeMap) -> bool:
    """Whether an observation says that it failed."""
    return short(attributes, f"{OBSERVATION}level") == ERROR_LEVEL


def read_call(attributes: AttributeMap) -> ModelCall:
    """Read a call from the attributes of its observation."""
    parameters = decoded(attributes.get(f"{OBSERVATION}model.parameters"))
    parameters = parameters if isinstance(parameters, dict) else {}
    usage = decoded(attributes.get(f"{OBSERVATION}usage_details"))
    usage = usage if isinstance(usage, dict) else {}
    session = short(attributes, "langfuse.session.id", "session.id")
    reason = short(attributes, f"{OBSERVATION}metadata.finish_reason")
    return ModelCall(
        node=slug(short(attributes, f"{OBSERVATION}metadata.langgraph_node")),
        model=short(attributes, f"{OBSERVATION}model.name"),
        # Metadata is JSON, value by value.
        finish_reason=reason.strip('"') if reason else None,
        max_output_tokens=count(parameters, "max_completion_tokens", "max_tokens"),
        temperature=temperature(parameters, "temperature"),
        input_tokens=count(usage, "input", "prompt_tokens", "input_tokens"),
        output_tokens=count(usage, "output", "completion_tokens", "output_tokens"),
        prompt_version=short_or_number(attributes, f"{OBSERVATION}prompt.version"),
        answer=_answer(attributes),
        attributes={"conversation_id": session} if session else {},
    )


def _answer(attributes: AttributeMap) -> Answer | None:
    """Read the output: a message, or the bare text of the answer, which may be JSON."""
    output = attributes.get(f"{OBSERVATION}output")
    if not isinstance(output, str):
        return None
    parsed = decoded(output)
    is_message = isinstance(parsed, dict) and ("role" in parsed or "tool_calls" in parsed)
    return first_answer(parsed) if is_message else Answer(shown(output))
