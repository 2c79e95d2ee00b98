"""What a span or log record says of a model call, in any convention of the table."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final, TypeVar

from diagnostics.ingest.otlp import genai, openinference
from diagnostics.ingest.otlp.answers import (
    NO_ANSWER,
    Answer,
    ModelCall,
    ProviderReply,
    calls_of,
    first_answer,
    read_parts,
    read_reply,
    shown,
)
from diagnostics.ingest.otlp.attributes import (
    CONVENTIONS,
    MARKS,
    MODEL_KEYS,
    OBSERVATION,
    OPERATIONS,
    SIGNS,
    AttributeMap,
    Convention,
    Key,
    count_of,
    decoded,
    short,
    slug,
    temperature_of,
    text_of,
    text_or_number_of,
)
from diagnostics.ingest.otlp.telemetry import SpanEvent
from failsoft.events import MAX_INTEGER

CALLS, AROUND, OTHERS = (OPERATIONS[name] for name in ("calls", "around", "others"))
CALL_ENDS = tuple(OPERATIONS["call_ends"])
OPENED, SILENT = (OPERATIONS[name] for name in ("opened", "silent"))
NOBODY = OPERATIONS["nobody"]
FRAMEWORK_CLASSES = frozenset(OPERATIONS["framework_classes"])
NAMES, NAMED = OPERATIONS["names"], tuple(OPERATIONS["named"])
OUTPUT_MODES = {"text": "text", "json": "json"}
NO_REPLY = ProviderReply(None)
HEAD = ("/",)
ROLES = ("assistant", "ai", "model")
Read = TypeVar("Read")


def calls_model(attributes: AttributeMap) -> bool | None:
    """Return whether a span says that it calls a model; None if it says neither."""
    for key in OPERATIONS["keys"]:
        word = (short(attributes, key) or "").strip('"').lower()
        if word in CALLS:
            return True
        if word in AROUND or (word and any(part in word for part in OTHERS)):
            return False
        if word.endswith(CALL_ENDS):
            return True
    return None


def is_model_call(attributes: AttributeMap, *, is_error: bool) -> bool:
    """Whether a span calls a model: by its operation, else by what only calls have.

    A failed call has no answer: its model is enough.
    """
    is_call = calls_model(attributes)
    if is_call is not None:
        return is_call
    if not names_model(attributes):
        return False
    facts = _Facts(attributes)
    return is_error or any(facts.at(key) is not None for key in SIGNS)


def names_model(attributes: AttributeMap) -> bool:
    return _Facts(attributes).first(text_of, MODEL_KEYS) is not None


def named_call(name: str, scope: str, attributes: AttributeMap) -> AttributeMap:
    """Return the attributes of a call, with those of its request that only its name says."""
    word, _, model = name.partition(" ")
    if not model or word not in NAMES or not scope.startswith(NAMED):
        return attributes
    return {"gen_ai.operation.name": word, "gen_ai.request.model": model, **attributes}


def demands_json(attributes: AttributeMap) -> bool:
    """Whether the operation is one that makes the model answer with JSON."""
    named = (key for key in OPERATIONS["keys"] if key in attributes)
    return any((short(attributes, key) or "").lower() in OPERATIONS["json"] for key in named)


def read_call(
    attributes: AttributeMap, events: Iterable[SpanEvent] = (), scope: str = ""
) -> ModelCall:
    """Read a call in all conventions: some instrumentations write several."""
    events = tuple(events)
    usage = genai.usage_of(events)
    facts = _Facts({**usage, **attributes} if usage else attributes)
    marked = [key for key in attributes if key.startswith(MARKS)]
    used = (convention for convention in CONVENTIONS if convention.is_used(marked, scope))
    call = reduce(ModelCall.completed_by, (_read(convention, facts, events) for convention in used))
    mode = call.output_mode or ("json" if demands_json(attributes) else None)
    if call.model is not None and call.output_mode == mode:
        return call
    return replace(call, model=call.model or call.served_model, output_mode=mode)


@dataclass(frozen=True, slots=True)
class _Facts:
    """The attributes of a span; JSON in them is read once."""

    attributes: AttributeMap
    _documents: dict[str, Any] = field(default_factory=dict)

    def at(self, key: Key) -> Any:  # noqa: ANN401 - any JSON
        if not key.path or key.attribute not in self.attributes:
            return self.attributes.get(key.attribute)
        if key.path == HEAD:
            head, slash, _ = str(self.attributes[key.attribute]).partition("/")
            return head if slash else None
        if key.attribute not in self._documents:
            self._documents[key.attribute] = decoded(self.attributes[key.attribute])
        value = self._documents[key.attribute]
        for name in key.path:
            value = _child(value, name)
        return value

    def first(self, read: Callable[[Any], Read | None], keys: Iterable[Key]) -> Read | None:
        for key in keys:
            # Most keys are missing, and asking costs much of reading a span.
            value = self.at(key) if key.attribute in self.attributes else None
            if value is not None and (known := read(value)) is not None:
                return known
        return None


def _child(value: object, name: str) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, list) and name.isdigit():
        return value[int(name)] if int(name) < len(value) else None
    return value.get(name) if isinstance(value, Mapping) else None


def _read(convention: Convention, facts: _Facts, events: Iterable[SpanEvent]) -> ModelCall:
    def first(name: str, read: Callable[[Any], Read | None]) -> Read | None:
        return facts.first(read, convention.keys.get(name, ()))

    def tokens(side: str) -> int | None:
        counted, keys = first(f"{side}_tokens", count_of), convention.keys.get(f"{side}_beside", ())
        if counted is None:
            return None
        return min(counted + sum(facts.first(count_of, [key]) or 0 for key in keys), MAX_INTEGER)

    grammar = ANSWERS.get(convention.name)
    reply = grammar(facts.attributes, events) if grammar else _rows(convention, facts)
    answer = reply.answer
    requested, named = first("model", _name), first("named_model", _name)
    extra = {
        "conversation_id": first("conversation_id", text_of),
        "response_id": first("response_id", text_of) or reply.response_id,
    }
    return ModelCall(
        node=slug(first("node", text_of) or first("node_id", _given)),
        provider=first("provider", _name),
        model=requested or named,
        finish_reason=first("finish_reason", _reason) or reply.finish_reason,
        output_mode=OUTPUT_MODES.get(first("output_mode", text_of) or ""),
        max_output_tokens=first("max_output_tokens", count_of),
        temperature=first("temperature", temperature_of),
        input_tokens=_either(tokens("input"), reply.input_tokens),
        output_tokens=_either(tokens("output"), reply.output_tokens),
        reasoning_tokens=first("reasoning_tokens", count_of),
        served_model=first("served_model", _name) or (named if requested else None),
        system_fingerprint=first("system_fingerprint", text_of),
        prompt_version=first("prompt_version", text_or_number_of),
        answer=answer,
        attributes={key: value for key, value in extra.items() if value is not None},
    )


def _name(value: object) -> str | None:
    """Return a name; MLflow writes all values as JSON, and others a word for none."""
    name = (text_of(value) or "").strip('"')
    return None if name.lower() in NOBODY else name


def _given(value: object) -> str | None:
    """Return an id without digits: any other may be random, and a node of its own each time."""
    text = text_of(value) or ""
    return None if any(map(str.isdigit, text)) else text


def _reason(value: object) -> str | None:
    """Return the first of the reasons: one, a list, its JSON, or a text with commas."""
    reasons = decoded(value)
    if isinstance(reasons, list):
        return text_of(reasons[0]) if reasons else None
    text = reasons if isinstance(reasons, str) else text_of(value)
    return (text or "").partition(",")[0].strip() or None


def _either(value: int | None, replied: int | None) -> int | None:
    return replied if value is None else value


def _rows(convention: Convention, facts: _Facts) -> ProviderReply:
    keys = convention.keys
    text = facts.first(_text, keys.get("text", ()))
    calls = facts.first(lambda value: calls_of(value) or None, keys.get("calls", ())) or ()
    if text is not None or calls:
        return ProviderReply(Answer(None if calls and not text else text, calls))
    envelope = next((value for key in keys.get("reply", ()) if (value := facts.at(key))), None)
    if envelope is None:
        return NO_REPLY
    # An unknown envelope is not what the model wrote.
    return read_reply(envelope) or ProviderReply(NO_ANSWER)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _genai(attributes: AttributeMap, events: Iterable[SpanEvent]) -> ProviderReply:
    answer = genai.answer_of(attributes, events)
    is_told = answer.is_known or answer.is_refusal
    return ProviderReply(answer if is_told else None, ended_for=answer.finish_reason)


def _langfuse(attributes: AttributeMap) -> Answer | None:
    """Read the output: a message, or the bare text of the answer, which may be JSON."""
    output = attributes.get(f"{OBSERVATION}output")
    if not isinstance(output, str):
        return None
    parsed = decoded(output)
    if (parts := read_parts(parsed)) is not None:
        return parts
    first = parsed[0] if isinstance(parsed, list) and parsed else parsed
    is_message = isinstance(first, dict) and (
        first.get("role") in ROLES or (first is parsed and "tool_calls" in first)
    )
    return first_answer(parsed) if is_message else Answer(shown(output))


ANSWERS: Final[Mapping[str, Callable[[AttributeMap, Iterable[SpanEvent]], ProviderReply]]] = {
    "GenAI": _genai,
    "OpenInference": lambda attributes, _: openinference.read_answer(attributes),
    "Langfuse": lambda attributes, _: ProviderReply(_langfuse(attributes)),
}
