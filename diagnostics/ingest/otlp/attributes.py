"""Typed reading of attributes, whose values may be anything."""

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

import jiter

from failsoft.events import MAX_INTEGER
from failsoft.json_values import clean_text

GENAI = frozenset(
    {
        "anthropic.message.stop_reason",
        "gen_ai.agent.call.id",
        "gen_ai.agent.name",
        "gen_ai.completion",
        "gen_ai.conversation.id",
        "gen_ai.evaluation.explanation",
        "gen_ai.evaluation.name",
        "gen_ai.evaluation.score.label",
        "gen_ai.evaluation.score.value",
        "gen_ai.openai.response.system_fingerprint",
        "gen_ai.openai.system_fingerprint",
        "gen_ai.operation.name",
        "gen_ai.output.messages",
        "gen_ai.output.type",
        "gen_ai.prompt.version",
        "gen_ai.provider.name",
        "gen_ai.request.max_tokens",
        "gen_ai.request.model",
        "gen_ai.request.temperature",
        "gen_ai.response.finish_reason",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.id",
        "gen_ai.response.model",
        "gen_ai.request.structured_output_schema",
        "gen_ai.system",
        "gen_ai.tool.definitions",
        "gen_ai.usage.completion_tokens",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.prompt_tokens",
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "langgraph_node",
        "llm.request.structured_output_schema",
        "llm.usage.reasoning_tokens",
        # pydantic-ai's own description of its request.
        "model_request_parameters",
        "openai.response.system_fingerprint",
        "traceloop.association.properties.langgraph_node",
        "traceloop.prompt.version",
        # Of span events and log records named `gen_ai.choice`.
        "finish_reason",
        "index",
        "message",
    }
)
OPENINFERENCE = frozenset(
    {
        "graph.node.id",
        "llm.finish_reason",
        "llm.invocation_parameters",
        "llm.model_name",
        "llm.prompt_template.version",
        "llm.provider",
        "llm.request.model_name",
        "llm.request.type",
        "llm.response.model_name",
        "llm.system",
        "llm.token_count.completion",
        "llm.token_count.completion_details.reasoning",
        "llm.token_count.prompt",
        # JSON with LangGraph's node.
        "metadata",
        "openinference.span.kind",
        "output.mime_type",
        "output.value",
    }
)
LANGFUSE = frozenset(
    {
        "langfuse.environment",
        "langfuse.observation.level",
        "langfuse.observation.metadata.finish_reason",
        "langfuse.observation.metadata.langgraph_node",
        "langfuse.observation.model.name",
        "langfuse.observation.model.parameters",
        "langfuse.observation.output",
        "langfuse.observation.prompt.version",
        "langfuse.observation.status_message",
        "langfuse.observation.type",
        "langfuse.observation.usage_details",
        "langfuse.release",
        "langfuse.session.id",
    }
)
SHARED = frozenset(
    {
        "aws.region",
        "cloud.region",
        "deployment.environment",
        "deployment.environment.name",
        "error.type",
        "event.name",
        "exception.type",
        "gcp.location",
        "http.response.status_code",
        "server.address",
        "service.name",
        "service.version",
        "session.id",
    }
)
KNOWN = GENAI | OPENINFERENCE | LANGFUSE | SHARED
PREFIXES = (
    "failsoft.",
    # Only the first answer: `...0.message.content`, `...0.finish_reason`.
    "llm.output_messages.0.",
    "gen_ai.completion.0.",
    # Names and schemas of the tools in a request.
    "llm.tools.",
    "llm.request.functions.",
    "gen_ai.request.functions.",
)


def is_known(key: str) -> bool:
    """Whether an attribute is read."""
    return key in KNOWN or key.startswith(PREFIXES)


MAX_SHORT = 200
MAX_JSON = 1 << 20
INTEGER = re.compile(r"[0-9]{1,10}")
NO_SLUG = re.compile(r"[^a-z0-9_-]+")
BEFORE_SLUG = re.compile(r"^[^a-z]+")
AttributeMap = Mapping[str, Any]


def short(attributes: AttributeMap, *keys: str) -> str | None:
    """Return the first of these that is a non-blank text, cut to 200 characters."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value.strip():
            return clean_text(value.strip())[:MAX_SHORT]
    return None


def short_or_number(attributes: AttributeMap, *keys: str) -> str | None:
    """Return the first of these that is a text or a whole number, as a text."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)[:MAX_SHORT]
        if (text := short(attributes, key)) is not None:
            return text
    return None


def count(attributes: AttributeMap, *keys: str) -> int | None:
    """Return the first of these that is a number from 0; resources have theirs as text."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and INTEGER.fullmatch(value):
            value = int(value)
        if isinstance(value, float) and isfinite(value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return min(value, MAX_INTEGER)
    return None


def temperature(attributes: AttributeMap, *keys: str) -> float | None:
    """Return the first of these that can be a temperature."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value) if 0 <= value <= 100 else None
    return None


def slug(text: str | None) -> str | None:
    """Return a text as a node name: lower case, `_` for invalid characters."""
    if text is None:
        return None
    name = BEFORE_SLUG.sub("", NO_SLUG.sub("_", text.lower())).strip("_-")[:63]
    return name or None


def decoded(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Return a structured value; JSON text is read, None when it cannot be."""
    if not isinstance(value, str):
        return value
    try:
        return jiter.from_json(value[: MAX_JSON + 1].encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
