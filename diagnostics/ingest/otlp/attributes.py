"""The attributes that are read, taken out of values that may hold anything."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import Any

import jiter

from failsoft.events import MAX_INTEGER
from failsoft.json_values import clean_text

GENAI = frozenset(
    {
        "gen_ai.agent.name",
        "gen_ai.completion",
        "gen_ai.conversation.id",
        "gen_ai.openai.response.system_fingerprint",
        "gen_ai.openai.system_fingerprint",
        "gen_ai.operation.name",
        "gen_ai.output.messages",
        "gen_ai.output.type",
        "gen_ai.provider.name",
        "gen_ai.request.max_tokens",
        "gen_ai.request.model",
        "gen_ai.request.temperature",
        "gen_ai.response.finish_reason",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.id",
        "gen_ai.response.model",
        "gen_ai.system",
        "gen_ai.usage.completion_tokens",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.prompt_tokens",
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "llm.usage.reasoning_tokens",
        "openai.response.system_fingerprint",
        # As span events and log records of `gen_ai.choice` have them.
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
        "llm.provider",
        "llm.request.type",
        "llm.system",
        "llm.token_count.completion",
        "llm.token_count.completion_details.reasoning",
        "llm.token_count.prompt",
        "openinference.span.kind",
        "output.mime_type",
        "output.value",
    }
)
SHARED = frozenset(
    {
        "deployment.environment",
        "deployment.environment.name",
        "error.type",
        "event.name",
        "exception.type",
        "http.response.status_code",
        "server.address",
        "service.name",
        "service.version",
        "session.id",
    }
)
KNOWN = GENAI | OPENINFERENCE | SHARED
PREFIXES = (
    "failsoft.",
    # Only the first answer: `...0.message.content`, `...0.finish_reason`.
    "llm.output_messages.0.",
    "gen_ai.completion.0.",
)


def is_known(key: str) -> bool:
    """Whether an attribute is read."""
    return key in KNOWN or key.startswith(PREFIXES)


MAX_SHORT = 200
MAX_JSON = 1 << 20
INTEGER = re.compile(r"[0-9]{1,10}")
NO_SLUG = re.compile(r"[^a-z0-9_-]+")
BEFORE_SLUG = re.compile(r"^[^a-z]+")
Bag = Mapping[str, Any]


def short(bag: Bag, *keys: str) -> str | None:
    """Return the first of these that is a text with something in it, cut to 200 characters."""
    for key in keys:
        value = bag.get(key)
        if isinstance(value, str) and value.strip():
            return clean_text(value.strip())[:MAX_SHORT]
    return None


def count(bag: Bag, *keys: str) -> int | None:
    """Return the first of these that is a number from 0; resources have theirs as text."""
    for key in keys:
        value = bag.get(key)
        if isinstance(value, str) and INTEGER.fullmatch(value):
            value = int(value)
        if isinstance(value, float) and isfinite(value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return min(value, MAX_INTEGER)
    return None


def temperature(bag: Bag, *keys: str) -> float | None:
    """Return the first of these that can be a temperature."""
    for key in keys:
        value = bag.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value) if 0 <= value <= 100 else None
    return None


def slug(text: str | None) -> str | None:
    """Make a node's name of a text: lower case, `_` for what a name may not hold."""
    if text is None:
        return None
    made = BEFORE_SLUG.sub("", NO_SLUG.sub("_", text.lower())).strip("_-")[:63]
    return made or None


def decoded(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Return a structured value; JSON text is read, None when it cannot be."""
    if not isinstance(value, str):
        return value
    try:
        return jiter.from_json(value[: MAX_JSON + 1].encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What is known of one call; `answer` is the text of the first answer."""

    node: str | None = None
    provider: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    output_mode: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    served_model: str | None = None
    system_fingerprint: str | None = None
    answer: str | None = field(default=None, repr=False)
    attributes: Mapping[str, str] = field(default_factory=dict)

    def completed_by(self, other: "ModelCall") -> "ModelCall":
        """Fill what is not known from what another convention tells of the same call."""
        missing = {
            item.name: getattr(other, item.name)
            for item in fields(self)
            if getattr(self, item.name) is None
        }
        more = {**other.attributes, **self.attributes}
        return replace(self, **missing, attributes=more)
