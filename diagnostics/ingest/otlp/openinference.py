"""OpenInference, the attributes of Phoenix and its instrumentations."""

import re
from collections.abc import Iterator

from diagnostics.ingest.otlp.answers import (
    Answer,
    CalledTool,
    ProviderReply,
    read_reply,
    shown,
    tool_call,
)
from diagnostics.ingest.otlp.attributes import AttributeMap, short
from diagnostics.ingest.otlp.telemetry import Span

MESSAGES = "llm.output_messages."
MESSAGE = f"{MESSAGES}0.message."
# As traceAI begins the same names.
OTHER_MESSAGES = "gen_ai.output.messages."
CONTENTS = f"{MESSAGE}contents."
TEXT = ".text"
JSON_TYPE = "application/json"
RESPONSE = re.compile('"object": ?"response"')
MAX_CONTENTS = 100
NO_REPLY = ProviderReply(Answer())
LLAMA_INDEX = "openinference.instrumentation.llama_index"
# Methods of LlamaIndex that call a model, such as `astream_chat`; others call these.
ASKING_METHODS = ("chat", "complete")
STRUCTURED_MODEL = "StructuredLLM."


def is_step(span: Span) -> bool:
    """Whether a span is a LlamaIndex method around or before a call that is reported as one."""
    is_asking = span.name.endswith(ASKING_METHODS) and not span.name.startswith(STRUCTURED_MODEL)
    return span.scope == LLAMA_INDEX and not is_asking


def read_answer(attributes: AttributeMap) -> ProviderReply:
    """Read the answer.

    What the messages omit is read from `output.value`, the provider's whole reply; of OpenAI's
    Responses each item is a message, and only all of them are the answer.
    """
    if any(key.startswith(OTHER_MESSAGES) for key in attributes):
        attributes = {
            key.replace(OTHER_MESSAGES, MESSAGES, 1): value for key, value in attributes.items()
        }
    answer = _answer(attributes)
    is_whole = answer is not None and (answer.text or answer.calls)
    is_item = RESPONSE.search(str(attributes.get("output.value"))) is not None
    is_json = short(attributes, "output.mime_type") == JSON_TYPE
    reply = NO_REPLY
    if is_json and (is_item or not is_whole):
        reply = read_reply(attributes.get("output.value")) or NO_REPLY
    replied = reply.answer
    if replied is None or replied.is_known:
        return reply if replied else reply._replace(answer=answer)
    if answer is None:
        return reply if replied.finish_reason else reply._replace(answer=None)
    return reply._replace(answer=answer._replace(finish_reason=replied.finish_reason))


def _answer(attributes: AttributeMap) -> Answer | None:
    """Find the first answer; a message with a role alone is an empty one."""
    calls = tuple(_calls(attributes))
    content = attributes.get(f"{MESSAGE}content")
    contents = (f"{CONTENTS}{index}.message_content" for index in range(MAX_CONTENTS))
    listed = [attributes[f"{key}{TEXT}"] for key in contents if _is_text(attributes, key)]
    texts = [content] if isinstance(content, str) else listed
    if texts:
        text = "".join(texts)
        return Answer(None if not text and _is_left_out(attributes) else shown(text), calls)
    if calls or any(key.startswith(MESSAGE) for key in attributes):
        return Answer(None if calls or _is_left_out(attributes) else "", calls)
    value = attributes.get("output.value")
    is_plain = short(attributes, "output.mime_type") != JSON_TYPE
    return Answer(shown(value)) if isinstance(value, str) and is_plain else None


def _is_left_out(attributes: AttributeMap) -> bool:
    """Whether tool calls, or contents other than a text, were omitted."""
    return any(
        key.startswith(f"{MESSAGE}tool_calls.")
        or (key.startswith(CONTENTS) and not _is_text(attributes, key.rpartition(".")[0]))
        for key in attributes
    )


def _is_text(attributes: AttributeMap, content: str) -> bool:
    """Whether a content is of the answer: not what the model thinks, nor a result of a tool."""
    is_answer: bool = attributes.get(f"{content}.type", "text") == "text"
    return is_answer and isinstance(attributes.get(f"{content}{TEXT}"), str)


def _calls(attributes: AttributeMap) -> Iterator[CalledTool]:
    for index in range(MAX_CONTENTS):
        key = f"{MESSAGE}tool_calls.{index}.tool_call.function."
        if f"{key}arguments" not in attributes:
            break
        yield tool_call(attributes.get(f"{key}name"), attributes[f"{key}arguments"])
    if f"{MESSAGE}function_call_arguments_json" in attributes:
        name = attributes.get(f"{MESSAGE}function_call_name")
        yield tool_call(name, attributes[f"{MESSAGE}function_call_arguments_json"])
