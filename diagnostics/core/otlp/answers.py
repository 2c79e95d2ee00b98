"""The text of an answer, out of the shapes that messages come in."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from diagnostics.core.otlp.picking import decoded, short

CONTENTS = ("parts", "content", "text")


class Answer(NamedTuple):
    """The text of one answer (None: it has none, a tool call for instance), and why it ended."""

    text: str | None
    finish_reason: str | None


NO_ANSWER = Answer(None, None)


def first_answer(messages: object) -> Answer:
    """Read the first of a list of messages, structured or as JSON text."""
    found = decoded(messages)
    if isinstance(found, list):
        found = found[0] if found else None
    return read_message(found)


def read_message(message: object) -> Answer:
    """Read one message: parts, a list of contents, plain content or a bare text.

    `{"message": {...}, "finish_reason": ...}`, as choices are told, is opened.
    """
    if isinstance(message, str):
        return Answer(message, None)
    if not isinstance(message, Mapping):
        return NO_ANSWER
    reason = short(message, "finish_reason")
    inner = decoded(message.get("message"))
    if isinstance(inner, Mapping):
        return Answer(_text_of(inner), reason)
    return Answer(_text_of(message), reason)


def _text_of(message: Mapping[str, Any]) -> str | None:
    for name in CONTENTS:
        content = message.get(name)
        if isinstance(content, str):
            return None if not content and message.get("tool_calls") else content
        if isinstance(content, list):
            texts = [_part_text(part) for part in content]
            told = [text for text in texts if text is not None]
            return "".join(told) if told else None
    return None


def _part_text(part: object) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type", "text") not in (
        "text",
        "output_text",
    ):
        return None
    text = part.get("content", part.get("text"))
    return text if isinstance(text, str) else None
