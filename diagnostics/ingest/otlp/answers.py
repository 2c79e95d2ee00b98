"""The answer of a model (a text, tool calls or a refusal) in every known encoding, and its call."""

import re
from ast import literal_eval
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from pydantic_core import to_json

from diagnostics.ingest.otlp.attributes import count, decoded, short
from failsoft.parsing.makers import FinishClass, ending_of

CONTENTS = ("parts", "content", "text")
# Tuples: the type of a part may be anything, and a set refuses what has no hash.
TEXT_PARTS = ("text", "output_text")
# In a message: .NET tells a refusal as the content of an error.
SAID_PARTS = (*TEXT_PARTS, "refusal", "error")
TOOL_PARTS = ("tool_call", "tool_use", "toolUse", "tool-call", "function_call", "function")
MESSAGE_KEYS = frozenset({"role", "tool_calls", "usage"})
# Bedrock, Haystack, Google and Genkit name a block by its key.
NAMED_CALLS = frozenset({"toolUse", "tool_call", "function_call", "functionCall", "toolRequest"})
# Not part of the answer: reasoning, and calls of the provider's own tools.
ASIDE_PARTS = ("reasoning", "thinking", "redacted_thinking")
ASIDE_KEYS = frozenset({"reasoningContent", "reasoning"})
# Beside the answer in a list of parts, such as `web_search_call` and its result.
BESIDE_PARTS = ("_call", "_use", "_result")
ARGUMENTS = ("arguments", "input", "args", "parameters", "tool.args")
TOOLS = ("name", "toolName", "tool_name", "tool.name")
# What instrumentations write in place of hidden content, and print of objects and errors.
HIDDEN = frozenset({"__REDACTED__"})
PRINTED = re.compile(r"<[\w.]+ object at 0x[0-9a-fA-F]+>|\w+Error\([\w.]+\): .*", re.DOTALL)
REFUSAL = "refusal"
MAX_PRINTED = 100_000
USAGES = ("usage", "usage_metadata", "usageMetadata")
INPUTS = ("prompt_tokens", "input_tokens", "inputTokens", "prompt_token_count", "promptTokenCount")
OUTPUTS = (
    *("completion_tokens", "output_tokens", "outputTokens"),
    *("candidates_token_count", "candidatesTokenCount"),
)
# A reply as Python prints it: a dictionary, or an object of OpenAI's SDK.
PRINTED_REPLY = re.compile(r"\{'(?=.*'role': 'assistant')", re.DOTALL)
PRINTED_THOUGHT = '{"reasoningContent": {'
PRINTED_REFUSAL = "content=[ResponseOutputRefusal("
PRINTED_OBJECT = re.compile(r"Response[A-Z]\w+\(\w+=.*\)", re.DOTALL)


class CalledTool(NamedTuple):
    """One call of a tool: its name, and its arguments as the text of an object.

    An object that was sent as one is closed, whether the model closed it or not.
    """

    name: str | None
    arguments: str
    is_text: bool = True


class Answer(NamedTuple):
    """One answer; without a text it was omitted, or consists of tool calls only."""

    text: str | None = None
    calls: tuple[CalledTool, ...] = ()
    finish_reason: str | None = None
    is_refusal: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the answer is known, even if it is empty."""
        return self.text is not None or bool(self.calls)


NO_ANSWER = Answer()


class ProviderReply(NamedTuple):
    answer: Answer | None
    response_id: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    # Why the answer ended, if nothing else of it is told.
    ended_for: str | None = None

    @property
    def finish_reason(self) -> str | None:
        return self.answer.finish_reason if self.answer else self.ended_for


def first_answer(messages: object) -> Answer:
    """Read the first of a list of messages, structured or as JSON text.

    Around answers of tools they are turns, not choices: the last one is read.
    """
    parsed = decoded(messages)
    if isinstance(parsed, list):
        said = [message for message in parsed if _mapping(message).get("role") != "tool"]
        parsed = said[0 if len(said) == len(parsed) else -1] if said else None
    return read_message(parsed)


def read_message(message: object) -> Answer:
    """Read one message: parts, a list of contents, plain content or a bare text.

    `{"message": {...}, "finish_reason": ...}`, the shape of a choice, is unwrapped.
    """
    if isinstance(message, str):
        return Answer(shown(message))
    if not isinstance(message, Mapping):
        return NO_ANSWER
    reason = short(message, "finish_reason", "stop_reason")
    inner = decoded(message.get("message"))
    if isinstance(inner, list):
        return _of_parts(inner)._replace(finish_reason=reason)
    content = inner if isinstance(inner, Mapping) else message
    return _answer_of(content)._replace(finish_reason=reason)


def tool_call(name: object, arguments: object) -> CalledTool:
    """Return a tool call; arguments sent as an object become a text."""
    text = arguments if isinstance(arguments, str) else to_json(arguments or {}).decode()
    return CalledTool(name if isinstance(name, str) else None, text, isinstance(arguments, str))


def shown(text: str) -> str | None:
    return None if text in HIDDEN or PRINTED.fullmatch(text) else text


def read_reply(value: object) -> ProviderReply | None:
    """Read a reply in the format of a provider or framework; None if the format is unknown."""
    reply = decoded(value)
    if (parts := read_parts(reply)) is not None:
        return ProviderReply(parts)
    # DSPy and others keep the texts of the answers.
    if isinstance(reply, list) and reply:
        reply = reply[0]
    if isinstance(reply, str):
        return ProviderReply(Answer(reply))
    if not isinstance(reply, Mapping):
        return None
    generation = _first(_first(reply.get("generations")))
    if isinstance(generation, Mapping):
        return _read_generation(generation)
    usage = next((_mapping(reply[name]) for name in USAGES if name in reply), {})
    answer = _reply_answer(reply)
    return answer and ProviderReply(
        answer, short(reply, "id"), count(usage, *INPUTS), count(usage, *OUTPUTS)
    )


def read_parts(value: object) -> Answer | None:
    """Read parts of a message or items of OpenAI's Responses, listed; None for anything else."""
    is_item = isinstance(value, Mapping) and "call_id" in value
    parts = value if isinstance(value, list) else [value] if is_item else []
    return _of_parts(_flattened(parts)) if parts and all(map(_is_part, parts)) else None


def _is_part(value: object) -> bool:
    part = _mapping(value)
    kind = part.get("type")
    if kind == "message":
        return part.get("role") == "assistant"
    is_known = kind in (*TEXT_PARTS, *TOOL_PARTS, *ASIDE_PARTS, REFUSAL)
    return is_known or (isinstance(kind, str) and kind.endswith(BESIDE_PARTS))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _reply_answer(reply: Mapping[str, Any]) -> Answer | None:
    if isinstance(choices := reply.get("choices"), list):
        return first_answer(choices)
    if isinstance(output := reply.get("output"), list):
        reason = short(_mapping(reply.get("incomplete_details")), "reason")
        return _of_parts(_flattened(output))._replace(finish_reason=reason)
    if isinstance(candidate := _first(reply.get("candidates")), Mapping):
        answer = _answer_of(_mapping(candidate.get("content")))
        return answer._replace(finish_reason=short(candidate, "finishReason", "finish_reason"))
    # Bedrock has the message in `output`, Ollama and Logfire in `message`.
    inner = (_mapping(reply.get("output")) or reply).get("message")
    if isinstance(inner, Mapping):
        reason = short(reply, "stopReason", "finish_reason", "done_reason")
        return _answer_of(inner)._replace(finish_reason=reason)
    if isinstance(text := reply.get("combined_chunk_content"), str):
        return Answer(text)
    is_message = isinstance(reply.get("content"), list) or not MESSAGE_KEYS.isdisjoint(reply)
    return read_message(reply) if is_message else None


def _read_generation(generation: Mapping[str, Any]) -> ProviderReply | None:
    """Read LangChain's message; after an error of its own it holds the provider's reply."""
    message = generation.get("message")
    kwargs = _mapping(message).get("kwargs")
    reason = short(_mapping(generation.get("generation_info")), "finish_reason", "stop_reason")
    if not isinstance(kwargs, Mapping):
        text = generation.get("text")
        is_plain = isinstance(text, str) and message is None
        return ProviderReply(Answer(text, finish_reason=reason)) if is_plain else None
    metadata = _mapping(kwargs.get("response_metadata"))
    if "body" in metadata:
        return read_reply(metadata["body"])
    reason = short(metadata, "finish_reason", "stop_reason") or reason
    return ProviderReply(_answer_of(kwargs)._replace(finish_reason=reason), short(metadata, "id"))


def _answer_of(message: Mapping[str, Any]) -> Answer:
    message = {**_mapping(message.get("additional_kwargs")), **message}
    refusal = message.get(REFUSAL)
    if isinstance(refusal, str) and refusal:
        return Answer(refusal, is_refusal=True)
    # The second is of OpenAI's older API.
    called = message.get("tool_calls") or [*filter(None, [message.get("function_call")])]
    # The second are those whose arguments LangChain could not read.
    calls = calls_of(called) + calls_of(message.get("invalid_tool_calls"))
    # Tool calls without their arguments are an unknown answer.
    is_called = bool(called or calls)
    contents = [message[name] for name in CONTENTS if name in message]
    content = next((value for value in contents if value is not None), None)
    if isinstance(content, list):
        answer = _of_parts(content)
        return answer._replace(calls=calls) if calls and not answer.calls else answer
    if isinstance(content, str):
        return Answer(None if is_called and not content else shown(content), calls)
    return Answer("" if contents and content is None and not is_called else None, calls)


def _of_parts(parts: Iterable[object]) -> Answer:
    """Join parts; one without its content leaves the text unknown."""
    texts, calls, is_refusal, is_called = list[str | None](), list[CalledTool](), False, False
    for item in parts:
        if isinstance(item, str):
            texts.append(item)
        if not isinstance(item, Mapping):
            continue
        # Some SDKs write every field, whether it says something or not.
        part = {key: value for key, value in item.items() if value is not None}
        kind = part.get("type", "text")
        if named := NAMED_CALLS & part.keys():
            calls.extend(calls_of([part[key] for key in named]))
            is_called = True
        elif kind in ASIDE_PARTS or _is_aside(part):
            continue
        elif kind in TOOL_PARTS:
            calls.extend(calls_of([part]))
            is_called = True
        else:
            is_refusal |= kind == REFUSAL
            text = part.get("content", part.get("text", part.get(REFUSAL)))
            is_text = kind in SAID_PARTS
            if isinstance(text, str) and is_text and (printed := _printed(text)) is not None:
                return printed
            texts.append(shown(text) if is_text and isinstance(text, str) else None)
    known = [text for text in texts if text is not None]
    is_known = bool(known) or not (texts or is_called)
    return Answer("".join(known) if is_known else None, tuple(calls), None, is_refusal)


def _is_aside(part: Mapping[str, Any]) -> bool:
    is_printed = str(part.get("content")).startswith(PRINTED_THOUGHT)
    return is_printed or part.get("thought") is True or not ASIDE_KEYS.isdisjoint(part)


def _printed(text: str) -> Answer | None:
    """Read a reply that an instrumentation printed; None for a text of the model."""
    if PRINTED_OBJECT.fullmatch(text) is not None:
        return Answer(is_refusal=PRINTED_REFUSAL in text)
    if len(text) > MAX_PRINTED or PRINTED_REPLY.match(text) is None:
        return None
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        reply = read_reply(literal_eval(text))
        return reply.answer if reply else None
    return None


def calls_of(calls: object) -> tuple[CalledTool, ...]:
    """Read tool calls, without those whose arguments were omitted."""
    parsed = decoded(calls)
    if not isinstance(parsed, list):
        return ()
    opened = [
        call["function"] if isinstance(call.get("function"), Mapping) else call
        for call in parsed
        if isinstance(call, Mapping)
    ]
    return tuple(
        tool_call(next((call[name] for name in TOOLS if name in call), None), call[key])
        for call in opened
        if (key := next((name for name in ARGUMENTS if name in call), None)) is not None
    )


def _flattened(output: list[Any]) -> list[Any]:
    """Yield the items of a response, with messages unwrapped."""
    items: list[Any] = []
    for item in output:
        content = item.get("content") if isinstance(item, Mapping) else None
        items += content if isinstance(content, list) else [item]
    return items


def _first(values: object) -> Any:  # noqa: ANN401 - any JSON
    return values[0] if isinstance(values, list) and values else None


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One model call; `answer` is None if the telemetry omits it."""

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
    prompt_version: str | None = None
    answer: Answer | None = field(default=None, repr=False)
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_begun(self) -> bool:
        """Whether anything of an answer is told, if only how long it was."""
        answer = self.answer or Answer()
        return bool(answer.text or answer.calls or self.output_tokens)

    @property
    def broke_off(self) -> bool:
        """Whether it ended by an error of the call before anything of an answer."""
        return not self.has_begun and ending_of(self.finish_reason) is FinishClass.INTERRUPTED

    def completed_by(self, other: "ModelCall") -> "ModelCall":
        """Return the call with missing fields filled from another convention."""
        missing = {
            item.name: getattr(other, item.name)
            for item in fields(self)
            if getattr(self, item.name) is None
        }
        merged = {**other.attributes, **self.attributes}
        return replace(self, **missing, attributes=merged)
