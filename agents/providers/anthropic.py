"""Anthropic's messages; a schema is enforced by one forced tool."""

import json
from typing import Any

import anthropic

from agents.core.actions.envelopes import wrap_call
from agents.core.attempts import OutputMode
from agents.core.offers import ToolOffer
from agents.providers.base import Completion, CompletionRequest, RefusedCallError
from agents.providers.faults import translate_fault

# Their words for why an answer ended, in the words the rest of the product uses.
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "stop",
}


class AnthropicProvider:
    """The official SDK with its own retries off."""

    def __init__(self, base_url: str, api_key: str | None) -> None:
        self._client = anthropic.Anthropic(
            api_key=api_key or "none", base_url=base_url or None, max_retries=0
        )

    def complete(self, request: CompletionRequest) -> Completion:
        """Answer once; every fault of the SDK becomes a ProviderError."""
        try:
            answer = self._client.messages.create(**_parameters(request))
            return _read(answer, native=bool(request.tools))
        except anthropic.AnthropicError as error:
            raise translate_fault(anthropic, error) from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise RefusedCallError("the answer is no message") from error


def _parameters(request: CompletionRequest) -> dict[str, Any]:
    """The call; the interface knows no temperature any more, so none is sent."""
    return {
        "model": request.model,
        "system": request.system,
        "messages": [{"role": "user", "content": request.user}],
        "max_tokens": request.max_output_tokens,
        "timeout": request.timeout_seconds,
        **_output_options(request),
    }


def _output_options(request: CompletionRequest) -> dict[str, Any]:
    if request.tools:
        tools = [_describe_tool(tool) for tool in request.tools]
        return {"tools": tools, "tool_choice": {"type": "any"}}
    if request.output_mode not in (OutputMode.SCHEMA, OutputMode.TOOLS):
        return {}
    tool = {"name": request.schema_name, "input_schema": request.json_schema}
    return {
        "tools": [tool],
        "tool_choice": {"type": "tool", "name": request.schema_name},
    }


def _describe_tool(tool: ToolOffer) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    }


def _read(answer: Any, *, native: bool) -> Completion:  # noqa: ANN401 - the SDK checks nothing, so neither do its types
    used = [block for block in answer.content if block.type == "tool_use"]
    texts = [block.text for block in answer.content if block.type == "text"]
    return Completion(
        text=json.dumps(used[0].input) if used and not native else "".join(texts),
        finish_reason=FINISH_REASONS.get(answer.stop_reason, answer.stop_reason),
        input_tokens=answer.usage.input_tokens if answer.usage else None,
        output_tokens=answer.usage.output_tokens if answer.usage else None,
        tool_calls=tuple(_envelope(block) for block in used) if native else (),
    )


def _envelope(block: Any) -> dict[str, object]:  # noqa: ANN401 - whatever the server sent
    """A tool use as OpenAI writes calls; what it lacks is counted by decoding (S4-43)."""
    identity, name = getattr(block, "id", None), getattr(block, "name", None)
    return wrap_call(identity, name, getattr(block, "input", None))
