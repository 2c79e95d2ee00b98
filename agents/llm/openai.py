"""Any endpoint that speaks OpenAI's chat completions, the embedded model's server included.

The SDK's `post` is used, not its typed method: that one walks every request and every answer by
its types, which costs more than the rest of a call together (bench/call).
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import httpx2
import openai

from agents.llm import transport
from agents.llm.provider import Completion, CompletionRequest, RefusedCallError
from agents.llm.streams import read_address, read_pieces, read_whole, whole_or_cut
from failsoft.actions.streaming import assemble_openai
from failsoft.retry.policy import OutputMode

PATH = "/chat/completions"
# Where Groq has the answer that it refuses to pass on.
REJECTED_ANSWER = "failed_generation"
OUTPUT_DETAILS = "completion_tokens_details"
# Whose reasoning models refuse `max_tokens`; the servers of others may know no other name.
OWN_HOSTS = (".openai.com", ".azure.com")
# Who answered, as the envelope has it; OpenRouter adds the provider behind it.
ANSWERERS = {
    "model": "served_model",
    "provider": "upstream",
    "system_fingerprint": "system_fingerprint",
}
# A LiteLLM proxy has it in headers: the address of the deployment that it chose,
# or, for a provider's official address, the deployment's id.
API_BASE, MODEL_ID = "x-litellm-model-api-base", "x-litellm-model-id"


class OpenAIProvider:
    """The official SDK with its own retries off."""

    def __init__(self, base_url: str, api_key: str | None, allows_private: bool = True) -> None:
        self._client = openai.OpenAI(
            # The SDK insists on a key; servers without one ignore it.
            api_key=api_key or "none",
            base_url=read_address(base_url),
            max_retries=0,
            http_client=transport.connect(openai, self, allows_private),
        )
        is_own = not base_url or f".{httpx2.URL(base_url).host}".endswith(OWN_HOSTS)
        self._token_limit = "max_completion_tokens" if is_own else "max_tokens"

    def complete(self, request: CompletionRequest) -> Completion:
        try:
            return self._stream(request) if request.streaming else self._ask(request)
        except openai.OpenAIError as error:
            if answer := _rejected_answer(error):
                return answer
            raise transport.translate_fault(openai, error) from error
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise RefusedCallError("the response is not a chat completion") from error

    def _ask(self, request: CompletionRequest) -> Completion:
        deadline = time.monotonic() + request.timeout_seconds
        response = self._open(request, deadline).response
        read_whole(response, deadline)
        answer: Any = read_upstream(response.headers) | response.json()
        choice = _checked([answer])[0]
        return _complete(choice["message"], choice, answer, request)

    def _stream(self, request: CompletionRequest) -> Completion:
        deadline = time.monotonic() + request.timeout_seconds
        options = {"stream": True, "stream_options": {"include_usage": True}}
        stream = self._open(request, deadline, **options)
        pieces = read_pieces(stream, openai, deadline)
        chunks = [read_upstream(stream.response.headers), *pieces.items]
        return whole_or_cut(_assemble(chunks, request), pieces)

    def _open(
        self, request: CompletionRequest, deadline: float, **options: object
    ) -> openai.Stream[object]:
        limit = {self._token_limit: request.max_output_tokens}
        body = _parameters(request) | limit | options
        return transport.send_forced(openai, partial(self._post, deadline), body, "auto")

    def _post(self, deadline: float, body: Mapping[str, Any]) -> openai.Stream[object]:
        return self._client.post(
            PATH,
            body=body,
            cast_to=object,
            options={"timeout": transport.seconds_until(deadline)},
            stream=True,
            stream_cls=openai.Stream[object],
        )


def read_upstream(headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the provider that a proxy's headers name, as a part of the envelope."""
    try:
        host = httpx2.URL(headers.get(API_BASE) or "").host
    except httpx2.InvalidURL:
        host = ""
    upstream = host or headers.get(MODEL_ID)
    return {"provider": upstream} if upstream else {}


def _rejected_answer(error: openai.OpenAIError) -> Completion | None:
    """Return the answer that a server held back because it breaks the schema or names no tool.

    Groq reports it as a fault of the request. It is an invalid answer like any other.
    """
    body = transport.error_in(error.body if isinstance(error, openai.APIError) else None)
    text = body.get(REJECTED_ANSWER)
    if not isinstance(text, str):
        return None
    return Completion(text, finish_reason=body.get("code"))


def _checked(envelopes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the choices of an answer or its chunks; ProviderError if it reports an error."""
    choices = [choice for part in envelopes for choice in part.get("choices") or ()]
    for part in (*envelopes, *choices):
        if error := part.get("error"):
            raise transport.translate_error("the answer is an error", {"error": error})
        if not choices and transport.with_reason("", part):
            raise transport.translate_error("the answer is an error", part)
    return choices


def _parameters(request: CompletionRequest) -> dict[str, Any]:
    return {
        "model": request.model,
        "messages": [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.user},
        ],
        **({} if request.temperature is None else {"temperature": request.temperature}),
        **_output_options(request),
    }


def _output_options(request: CompletionRequest) -> dict[str, Any]:
    if request.tools:
        names = ("name", "description", "parameters")
        functions = [{name: getattr(tool, name) for name in names} for tool in request.tools]
        tools = [{"type": "function", "function": function} for function in functions]
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
                "tool_choice": {"type": "function", "function": {"name": request.schema_name}},
            }
        case _:
            return {}


def _complete(
    message: Mapping[str, Any],
    choice: Mapping[str, Any],
    envelope: Mapping[str, Any],
    request: CompletionRequest,
) -> Completion:
    tool_calls: Any = message.get("tool_calls") or ()
    # Unchecked: a malformed call must not invalidate the others.
    calls = tuple(tool_calls) if isinstance(tool_calls, list | tuple) else (tool_calls,)
    refusal, text = message.get("refusal"), _text_of(message.get("content"))
    if calls and not request.tools:
        text = transport.read_arguments(calls[0])
    # A forced call is the answer itself; any other is the model's choice.
    is_forced = request.output_mode is OutputMode.TOOLS and not request.tools
    reason = choice.get("finish_reason")
    usage = envelope.get("usage") or {}
    return Completion(
        text=str(text or refusal or ""),
        finish_reason="refusal" if refusal and reason else reason,
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        tool_calls=() if is_forced else calls,
        reasoning_tokens=(usage.get(OUTPUT_DETAILS) or {}).get("reasoning_tokens"),
        **{field: envelope.get(name) for name, field in ANSWERERS.items()},
    )


def _assemble(chunks: Sequence[dict[str, Any]], request: CompletionRequest) -> Completion:
    choices = _checked(chunks)
    deltas = [choice.get("delta") or {} for choice in choices]
    calls = assemble_openai(call for delta in deltas for call in delta.get("tool_calls") or ())
    message = {
        "content": _join(deltas, "content"),
        "refusal": _join(deltas, "refusal"),
        "tool_calls": calls,
    }
    latest = {name: _last(chunks, name) for name in ("usage", *ANSWERERS)}
    ended = {"finish_reason": _last(choices, "finish_reason")}
    return _complete(message, ended, latest, request)


def _last(pieces: Sequence[Mapping[str, Any]], name: str) -> Any:  # noqa: ANN401 - any JSON
    return next(filter(None, (piece.get(name) for piece in reversed(pieces))), None)


def _join(deltas: Sequence[dict[str, Any]], name: str) -> str:
    return "".join(_text_of(delta.get(name)) or "" for delta in deltas)


def _text_of(content: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return the text of a content that some servers divide into parts; others unchanged."""
    if not isinstance(content, list):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")
