"""Blocks of thinking, in the marks of every maker."""

import re

from failsoft.events import ParseErrorType, ValidationErrorItem
from failsoft.parsing.faults import ParseFault, RefusalCause, caused
from failsoft.parsing.makers import MAKERS

_ROWS = MAKERS["thinking"]
_OPENINGS = [f"(?P<o{number}>{row['open']})" for number, row in enumerate(_ROWS)]
_CLOSINGS = [f"(?P<c{number}>{row['close']})" for number, row in enumerate(_ROWS) if "close" in row]
_OPENING = re.compile("|".join(_OPENINGS))
_CLOSING = re.compile("|".join(_CLOSINGS))
# A block of these counts only before a further message.
_BEFORE = {
    f"o{number}": re.compile(row["before"]) for number, row in enumerate(_ROWS) if "before" in row
}
_ENDS = {
    f"o{number}": re.compile(row.get("close") or f"(?={row['end']})")
    for number, row in enumerate(_ROWS)
}
MARKS = "|".join([*_OPENINGS, *_CLOSINGS])
_MARK = re.compile(MARKS)
# A text without any of these has no mark.
HINTS = ("<", "[THINK", "[/THINK", "[INST", "[/INST", "◁", "assistantfinal", "to=")
_LINE = 400
# The code of an answer that has no text, because its output tokens went into reasoning.
ONLY_REASONING = "only_reasoning"


def is_quoted(text: str, at: int, begin: int = 0) -> bool:
    """Whether a mark is named in a quotation or in code, by the quotes on its line."""
    begin = max(begin, at - _LINE)
    line = text[max(begin, text.rfind("\n", begin, at) + 1) : at]
    return (line.count('"') - line.count('\\"')) % 2 == 1 or line.replace("```", "").count(
        "`"
    ) % 2 == 1


def block_end(text: str, opening: re.Match[str]) -> int | None:
    """Return the end of the block that a mark opens; ParseFault if nothing closes it.

    None where the text is thinking only before another message, which does not follow.
    """
    kind = opening.lastgroup or ""
    closing = _ENDS[kind].search(text, opening.end())
    if kind in _BEFORE:
        message = closing and _BEFORE[kind].match(text, closing.start())
        return message.end() if message else None
    if closing is None:
        raise unclosed()
    return closing.end()


def block_at(text: str, at: int) -> int | None:
    opening = _OPENING.match(text, at)
    return None if opening is None else block_end(text, opening)


def unclosed() -> ParseFault:
    return caused(0, RefusalCause.OPEN_THINKING, ParseErrorType.TRUNCATED)


def lone_closing(text: str, at: int) -> int | None:
    """Return the end of the next mark after `at` if it closes what no mark opened."""
    mark = _MARK.search(text, at)
    while mark is not None and is_quoted(text, mark.start(), at):
        mark = _MARK.search(text, mark.end())
    return mark.end() if mark is not None and is_closing(mark) else None


def is_closing(mark: re.Match[str]) -> bool:
    return (mark.lastgroup or "").startswith("c")


def blank(text: str, spans: list[tuple[int, int]]) -> str:
    """Return a text with spans, in order, replaced by spaces; offsets stay."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], " " * (end - start))
        at = end
    return "".join([*parts, text[at:]])


def drop_thinking(text: str) -> str:
    """Return plain lines of text with blocks of thinking blanked out; offsets stay.

    Text before a closing mark without an opening one is thinking, too. An unclosed block
    raises ParseFault. In a text with JSON, a mark may be part of a string: see `find_answer`.
    """
    if not any(hint in text for hint in HINTS):
        return text
    spans: list[tuple[int, int]] = []
    at = 0
    while (mark := _MARK.search(text, at)) is not None:
        at = mark.end()
        if is_quoted(text, mark.start()):
            continue
        if is_closing(mark):
            spans = [(0, at)]
        elif (end := block_end(text, mark)) is not None:
            at = end
            spans.append((mark.start(), at))
    return blank(text, spans)


def reasoning_fault(output_tokens: int | None, reasoning_tokens: int) -> ValidationErrorItem:
    """Return the error of an answer without text whose tokens went into reasoning."""
    is_all = output_tokens is None or reasoning_tokens >= output_tokens
    spent = f"all {reasoning_tokens:,}" if is_all else f"{reasoning_tokens:,} of {output_tokens:,}"
    message = (
        f"expected an answer; {spent} output tokens were reasoning: raise the token limit or"
        " lower the reasoning effort"
    )
    return ValidationErrorItem(path="", code=ONLY_REASONING, message=message, line=1, column=1)
