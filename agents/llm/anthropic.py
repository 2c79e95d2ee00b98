"""Anthropic's messages; a schema is enforced by one forced tool."""

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import anthropic

from agents.llm import transport
from agents.llm.provider import Completion, CompletionRequest, RefusedCallError
from agents.llm.streams import read_address, read_pieces, read_whole, whole_or_cut
from failsoft.actions.decoding import wrap_call
from failsoft.actions.streaming import assemble_anthropic
from failsoft.retry.policy import OutputMode

# Anthropic's stop reasons as the finish reasons of the product.
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "stop",
}
AUTO = {"type": "auto"}


class AnthropicProvider:
    """The official SDK with its own retries off."""

    def __init__(self, base_url: str, api_key: str | None, allows_private: bool = True) -> None:
        self._client = anthropic.Anthropic(
            api_key=api_key or "none",
            base_url=read_address(base_url),
            max_retries=0,
            http_client=transport.connect(anthropic, self, allows_private),
        )

    def complete(self, request: CompletionRequest) -> Completion:
        try:
            return self._stream(request) if request.streaming else self._ask(request)
        except anthropic.AnthropicError as error:
            raise transport.translate_fault(anthropic, error) from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise RefusedCallError("the response is not a message") from error

    def _ask(self, request: CompletionRequest) -> Completion:
        deadline = time.monotonic() + request.timeout_seconds
        create = self._client.messages.with_streaming_response.create
        with ExitStack() as stack:

            def send(body: dict[str, Any]) -> Any:  # noqa: ANN401 - the SDK's own
                return stack.enter_context(
                    create(**body, timeout=transport.seconds_until(deadline))
                )

            answer = transport.send_forced(anthropic, send, _parameters(request), AUTO)
            read_whole(answer.http_response, deadline)
            return _read(answer.parse(), native=bool(request.tools))

    def _stream(self, request: CompletionRequest) -> Completion:
        deadline = time.monotonic() + request.timeout_seconds

        def send(body: dict[str, Any]) -> Any:  # noqa: ANN401 - the SDK's own
            timeout = transport.seconds_until(deadline)
            return self._client.messages.create(**body, stream=True, timeout=timeout)

        stream = transport.send_forced(anthropic, send, _parameters(request), AUTO)
        pieces = read_pieces(stream, anthropic, deadline)
        assembled = _assemble(pieces.items, native=bool(request.tools))
        return whole_or_cut(assembled, pieces)


def _parameters(request: CompletionRequest) -> dict[str, Any]:
    """Return the request; the API no longer has a temperature, so none is sent."""
    return {
        "model": request.model,
        "system": request.system,
        "messages": [{"role": "user", "content": request.user}],
        "max_tokens": request.max_output_tokens,
        **_output_options(request),
    }


def _output_options(request: CompletionRequest) -> dict[str, Any]:
    if request.tools:
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
        return {"tools": tools, "tool_choice": {"type": "any"}}
    if request.output_mode not in (OutputMode.SCHEMA, OutputMode.TOOLS):
        return {}
    tool = {"name": request.schema_name, "input_schema": request.json_schema}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": request.schema_name}}


def _read(answer: Any, *, native: bool) -> Completion:  # noqa: ANN401 - the SDK checks nothing, so neither do its types
    used = [block for block in answer.content if block.type == "tool_use"]
    texts = [block.text for block in answer.content if block.type == "text"]
    return Completion(
        text=json.dumps(used[0].input) if used and not native else "".join(texts),
        finish_reason=FINISH_REASONS.get(answer.stop_reason, answer.stop_reason),
        input_tokens=answer.usage.input_tokens if answer.usage else None,
        output_tokens=answer.usage.output_tokens if answer.usage else None,
        tool_calls=tuple(_envelope(block) for block in used) if native else (),
        served_model=answer.model,
    )


def _assemble(events: Sequence[dict[str, Any]], *, native: bool) -> Completion:
    deltas = [event.get("delta") or {} for event in events]
    texts = [delta.get("text") or "" for delta in deltas]
    used = assemble_anthropic(events)
    usage: dict[str, Any] = {}
    for event in events:
        counts = (event.get("message") or event).get("usage") or {}
        usage |= {name: count for name, count in counts.items() if count is not None}
    models = ((event.get("message") or {}).get("model") for event in events)
    reasons = [delta["stop_reason"] for delta in deltas if delta.get("stop_reason")]
    reason = reasons[-1] if reasons else None
    return Completion(
        text=transport.read_arguments(used[0]) if used and not native else "".join(texts),
        finish_reason=FINISH_REASONS.get(reason, reason) if reason else None,
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        tool_calls=tuple(used) if native else (),
        served_model=next(filter(None, models), None),
    )


def _envelope(block: Any) -> dict[str, object]:  # noqa: ANN401 - whatever the server sent
    """Return a tool use in OpenAI's format; decoding reports what it lacks."""
    identity, name = getattr(block, "id", None), getattr(block, "name", None)
    return wrap_call(identity, name, getattr(block, "input", None))
