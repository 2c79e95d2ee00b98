"""The attributes that Langfuse's SDK writes for a generation."""

from diagnostics.ingest.otlp.answers import Answer, first_answer, shown
from diagnostics.ingest.otlp.attributes import AttributeMap, decoded, short

OBSERVATION = "langfuse.observation."
ERROR_LEVEL = "ERROR"


def is_error(attributes: AttributeMap) -> bool:
    """Whether an observation says that it failed."""
    return short(attributes, f"{OBSERVATION}level") == ERROR_LEVEL


def read_answer(attributes: AttributeMap) -> Answer | None:
    """Read the output: a message, or the bare text of the answer, which may be JSON."""
    output = attributes.get(f"{OBSERVATION}output")
    if not isinstance(output, str):
        return None
    parsed = decoded(output)
    is_message = isinstance(parsed, dict) and ("role" in parsed or "tool_calls" in parsed)
    return first_answer(parsed) if is_message else Answer(shown(output))
