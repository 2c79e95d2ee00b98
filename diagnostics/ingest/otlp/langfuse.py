"""The attributes that Langfuse's SDK writes for a generation."""

from diagnostics.ingest.otlp.answers import Answer, first_answer, read_parts, shown
from diagnostics.ingest.otlp.attributes import AttributeMap, decoded, short

OBSERVATION = "langfuse.observation."
ERROR_LEVEL = "ERROR"
ROLES = ("assistant", "ai", "model")


def is_error(attributes: AttributeMap) -> bool:
    """Whether an observation says that it failed."""
    return short(attributes, f"{OBSERVATION}level") == ERROR_LEVEL


def read_answer(attributes: AttributeMap) -> Answer | None:
    """Read the output: a message, or the bare text of the answer, which may be JSON."""
    output = attributes.get(f"{OBSERVATION}output")
    if not isinstance(output, str):
        return None
    parsed = decoded(output)
    if (parts := read_parts(parsed)) is not None:
        return parts
    first = parsed[0] if isinstance(parsed, list) and parsed else parsed
    is_message = isinstance(first, dict) and (
        first.get("role") in ROLES or (first is parsed and "tool_calls" in first)
    )
    return first_answer(parsed) if is_message else Answer(shown(output))
