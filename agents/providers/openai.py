"""Any endpoint that speaks OpenAI's chat completions, the embedded model's server included."""

import time
from collections.abc import Sequence
from typing import Any

import openai

from agents.core.actions.streaming import assemble_openai
from agents.core.attempts import OutputMode
from agents.core.offers import ToolOffer
from agents.providers.base import Completion, CompletionRequest, RefusedCallError
from agents.providers.faults import translate_fault
from agents.providers.streams import read_pieces, whole_or_cut


class OpenAIProvider:
    """The official SDK with its own retries off."""

    def __init__(self, base_url: str, api_key: str | None) -> None:
        self._client = openai.OpenAI(
            # The SDK insists on a key; servers without one ignore it.
            api_key=api_key or "none",
            base_url=base_url or None,
            max_retries=0,
        )
        self._token_limit = "max_tokens" if base_url else "max_completion_tokens"

    def complete(self, request: CompletionRequest) -> Completion:
        """Answer once; every fault of the SDK becomes a ProviderError."""
        try:
            parameters = _parameters(request) | {
                self._token_limit: request.max_output_tokens
            }
            if request.streaming:
                return self._stream(parameters, request)
            answer = self._client.chat.completions.create(**parameters)
            return _read(answer, request)
        except openai.OpenAIError as error:
            raise translate_fault(openai, error) from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise RefusedCallError("the answer is no chat completion") from error

    def _stream(
        self, parameters: dict[str, Any], request: CompletionRequest
    ) -> Completion:
        deadline = time.monotonic() + request.timeout_seconds
        stream = self._client.chat.completions.create(
            **parameters, stream=True, stream_options={"include_usage": True}
        )
        pieces = read_pieces(stream, openai, deadline)
        return whole_or_cut(_assemble(pieces.items, request), pieces)


def _parameters(request: CompletionRequest) -> dict[str, Any]:
    return {
        "model": request.model,
        "messages": [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.user},
        ],
        "temperature": request.temperature,
        "timeout": request.timeout_seconds,
        **_output_options(request),
    }


def _output_options(request: CompletionRequest) -> dict[str, Any]:
    if request.tools:
        tools = [_describe_tool(tool) for tool in request.tools]
        return {"tools": tools, "tool_choice": "required"}
    match request.output_mode:
        case OutputMode.JSON:
            return {"response_format": {"type": "json_object"}}
        case OutputMode.SCHEMA:
            schema = {"name": request.schema_name, "schema": request.json_schema}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        case OutputMode.TOOLS:
            function = {"name": request.schema_name, "parameters": request.json_schema}
            return {
                "tools": [{"type": "function", "function": function}],
                "tool_choice": {
                    "type": "function",
                    "function": {"name": request.schema_name},
                },
            }
        case _:
            return {}


def _describe_tool(tool: ToolOffer) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _read(answer: Any, request: CompletionRequest) -> Completion:  # noqa: ANN401 - the SDK checks nothing, so neither do its types
    choice = answer.choices[0]
    calls: Any = choice.message.tool_calls or ()
    text = choice.message.content
    if calls and not request.tools:
        text = calls[0].function.arguments
    # One call that was forced is the answer itself; others are the model's own.
    is_forced = request.output_mode is OutputMode.TOOLS and not request.tools
    refusal = getattr(choice.message, "refusal", None)
    return Completion(
        text=str(text or refusal or ""),
        finish_reason="refusal" if refusal else choice.finish_reason,
        input_tokens=answer.usage.prompt_tokens if answer.usage else None,
        output_tokens=answer.usage.completion_tokens if answer.usage else None,
        tool_calls=_envelopes(calls) if calls and not is_forced else (),
    )


def _assemble(
    chunks: Sequence[dict[str, Any]], request: CompletionRequest
) -> Completion:
    """Put together what the chunks of a stream say."""
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or ()]
    deltas = [choice.get("delta") or {} for choice in choices]
    calls = assemble_openai(
        call for delta in deltas for call in delta.get("tool_calls") or ()
    )
    usage = next((chunk["usage"] for chunk in chunks[::-1] if chunk.get("usage")), {})
    reasons = [choice.get("finish_reason") for choice in choices]
    text, refusal = _join(deltas, "content"), _join(deltas, "refusal")
    if calls and not request.tools:
        text = str(calls[0]["function"]["arguments"])
    is_forced = request.output_mode is OutputMode.TOOLS and not request.tools
    reason = next((reason for reason in reasons[::-1] if reason), None)
    return Completion(
        text=text or refusal,
        finish_reason="refusal" if refusal and reason else reason,
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        tool_calls=() if is_forced else tuple(calls),
    )


def _join(deltas: Sequence[dict[str, Any]], name: str) -> str:
    return "".join(delta.get(name) or "" for delta in deltas)


def _envelopes(calls: Any) -> tuple[Any, ...]:  # noqa: ANN401 - whatever the server sent
    """The calls as they came; a broken one must not take the others with it (S4-43)."""
    listed = calls if isinstance(calls, list) else [calls]
    return tuple(
        call.to_dict(warnings=False) if isinstance(call, openai.BaseModel) else call
        for call in listed
    )
