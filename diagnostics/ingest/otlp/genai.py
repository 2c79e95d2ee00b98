"""OpenTelemetry's semantic conventions for generative AI, including older names."""

from collections.abc import Iterable, Iterator

from diagnostics.ingest.otlp.answers import (
    NO_ANSWER,
    Answer,
    CalledTool,
    calls_of,
    first_answer,
    read_message,
    read_parts,
    read_reply,
    shown,
    tool_call,
)
from diagnostics.ingest.otlp.attributes import AttributeMap, count, decoded, short
from diagnostics.ingest.otlp.request_schemas import offers_tools
from diagnostics.ingest.otlp.telemetry import SpanEvent, Value

DETAILS = "gen_ai.client.inference.operation.details"
CHOICE = "gen_ai.choice"
CONTENT = "gen_ai.event.content"
COMPLETION = "gen_ai.content.completion"
USAGE = "gen_ai.usage"
# Of the answers only the first is read.
FIRST = "gen_ai.completion.0."
AFTER_THOUGHTS = "gen_ai.completion.1.content"
MAX_CALLS = 100


def answer_of(attributes: AttributeMap, events: Iterable[SpanEvent] = ()) -> Answer:
    """Find the first answer: in the attributes, else in the events of the span."""
    if "gen_ai.output.messages" in attributes:
        answer = first_answer(attributes["gen_ai.output.messages"])
        # LiteLLM reports tool calls under the older names only.
        calls = () if answer.text or answer.calls else tuple(_indexed_calls(attributes))
        return answer._replace(text=None, calls=calls) if calls else answer
    if any(key.startswith(FIRST) for key in attributes):
        return _indexed(attributes)
    if "gen_ai.completion" in attributes:
        return _completion(attributes["gen_ai.completion"])
    for event in (*events, *_listed_events(attributes.get("events"))):
        event_answer = answer_of_event(event.name, event.attributes, None)
        if event_answer != NO_ANSWER:
            return event_answer
    return NO_ANSWER


def usage_of(events: Iterable[SpanEvent]) -> AttributeMap:
    """Return the tokens that are told by an event of the span."""
    return next((event.attributes for event in events if event.name == USAGE), {})


def answer_of_event(name: str, attributes: AttributeMap, body: Value) -> Answer:
    """Find the answer in a span's event or in a log record of one."""
    # Semantic Kernel has the event as JSON in an attribute, or in the text of the record.
    content = decoded(attributes.get(CONTENT) if body is None else body)
    fields = {**attributes, **content} if isinstance(content, dict) else attributes
    if name == DETAILS and "gen_ai.output.messages" in fields:
        return first_answer(fields["gen_ai.output.messages"])
    if name == COMPLETION and "gen_ai.completion" in fields:
        return _completion(fields["gen_ai.completion"])
    if name == CHOICE and count(fields, "index") in (None, 0):
        return read_message(fields)
    return NO_ANSWER


def _listed_events(value: object) -> Iterator[SpanEvent]:
    """Yield the events that Logfire and pydantic-ai keep in an attribute, as JSON."""
    listed = decoded(value) if value is not None else None
    for event in listed if isinstance(listed, list) else ():
        if isinstance(event, dict) and event.get("event.name") == CHOICE:
            yield SpanEvent(CHOICE, event)


def _completion(value: object) -> Answer:
    """Read the oldest form: messages as JSON, or the bare text."""
    parsed = decoded(value)
    # Of the answer itself, too, a list or a text is no reply.
    reply = read_reply(parsed) if isinstance(parsed, dict) else None
    if reply is not None and reply.answer is not None and reply.answer.is_known:
        return reply.answer
    if isinstance(parsed, list | dict) and first_answer(parsed) != NO_ANSWER:
        return first_answer(parsed)
    return Answer(shown(value)) if isinstance(value, str) else NO_ANSWER


def _indexed(attributes: AttributeMap) -> Answer:
    """Read `gen_ai.completion.0.*`; a role alone is an empty answer."""
    calls, reason = tuple(_indexed_calls(attributes)), short(attributes, f"{FIRST}finish_reason")
    is_called = any(
        key.startswith((f"{FIRST}tool_calls.", f"{FIRST}function_call.")) for key in attributes
    )
    text = attributes.get(f"{FIRST}content", attributes.get(AFTER_THOUGHTS))
    if refusal := short(attributes, f"{FIRST}refusal"):
        return Answer(refusal, finish_reason=reason, is_refusal=True)
    if f"{FIRST}tool_call_id" in attributes:
        return Answer(calls=calls or calls_of([decoded(text)]), finish_reason=reason)
    if isinstance(text, str) and text.startswith("[{") and (parts := read_parts(decoded(text))):
        return parts._replace(calls=parts.calls or calls, finish_reason=reason)
    if isinstance(text, str):
        return Answer(None if is_called and not text else shown(text), calls, reason)
    # Who leaves out calls of tools may also leave out why the answer ended.
    is_ended = reason or "gen_ai.response.finish_reasons" in attributes
    is_whole = not is_called and (is_ended or not offers_tools(attributes))
    is_empty = f"{FIRST}role" in attributes and is_whole
    return Answer("" if is_empty else None, calls, reason)


def _indexed_calls(attributes: AttributeMap) -> Iterator[CalledTool]:
    for index in range(MAX_CALLS):
        key = f"{FIRST}tool_calls.{index}."
        if f"{key}arguments" in attributes:
            yield tool_call(attributes.get(f"{key}name"), attributes[f"{key}arguments"])
        elif f"{key}name" not in attributes:
            break
    if f"{FIRST}function_call.arguments" in attributes:
        name = attributes.get(f"{FIRST}function_call.name")
        yield tool_call(name, attributes[f"{FIRST}function_call.arguments"])
