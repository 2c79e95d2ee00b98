"""Langfuse: the attributes that its SDK writes for a generation."""

from diagnostics.ingest.otlp.answers import Answer, first_answer, shown
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

OBSERVATION = "langfuse.observation."
CALLS = frozenset({"generation"})
ERROR_LEVEL = "ERROR"


def is_model_call(bag: Bag) -> bool:
    """Whether an observation is a generation."""
    return short(bag, f"{OBSERVATION}type") in CALLS


def is_error(bag: Bag) -> bool:
    """Whether an observation says that it failed."""
    return short(bag, f"{OBSERVATION}level") == ERROR_LEVEL


def read_call(bag: Bag) -> ModelCall:
    """Read a call from the attributes of its observation."""
    asked = decoded(bag.get(f"{OBSERVATION}model.parameters"))
    asked = asked if isinstance(asked, dict) else {}
    usage = decoded(bag.get(f"{OBSERVATION}usage_details"))
    usage = usage if isinstance(usage, dict) else {}
    session = short(bag, "langfuse.session.id", "session.id")
    reason = short(bag, f"{OBSERVATION}metadata.finish_reason")
    return ModelCall(
        node=slug(short(bag, f"{OBSERVATION}metadata.langgraph_node")),
        model=short(bag, f"{OBSERVATION}model.name"),
        # Metadata is JSON, value by value.
        finish_reason=reason.strip('"') if reason else None,
        max_output_tokens=count(asked, "max_completion_tokens", "max_tokens"),
        temperature=temperature(asked, "temperature"),
        input_tokens=count(usage, "input", "prompt_tokens", "input_tokens"),
        output_tokens=count(usage, "output", "completion_tokens", "output_tokens"),
        prompt_version=short_or_number(bag, f"{OBSERVATION}prompt.version"),
        answer=_answer(bag),
        attributes={"conversation_id": session} if session else {},
    )


def _answer(bag: Bag) -> Answer | None:
    """Read the output: a message, or the bare text of the answer, JSON itself perhaps."""
    output = bag.get(f"{OBSERVATION}output")
    if not isinstance(output, str):
        return None
    found = decoded(output)
    is_message = isinstance(found, dict) and ("role" in found or "tool_calls" in found)
    return first_answer(found) if is_message else Answer(shown(output))
