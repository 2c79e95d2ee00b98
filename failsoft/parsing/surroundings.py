"""The text around an answer: fences, tags, wrappers and prose are skipped, data is refused.

Surrounding text that looks like more of the document means that the answer is incomplete;
then it is refused.
"""

import re

from failsoft.events import AROUND
from failsoft.parsing.faults import RepairLedger, unreadable

_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \t]*[\w+.-]*")
_TAG = re.compile(
    r"</?[A-Za-z_][^<>\n]{0,200}>|<\|[^|\n]{0,200}\|>|\[/?(?:TOOL_CALLS|TOOL_REQUEST)\]|<[｜|][^<>\n]{0,80}>"
)
_WRAPPER = re.compile(
    r"(?:\b(?:return|yield|await|export default)|\b(?:const|let|var)\s+[\w$]+\s*="
    r"|\b[\w$.]{1,80}\s*=>?|\b[\w$.]{1,80}\()\s*\Z"
)
# `"steps": [` and `steps": [`; `"steps" [` at the start of a line.
_KEY_BEFORE = re.compile(
    r"(?:[\"'“‘`]?\b[\w.-][\w .-]{0,100}[\"'”’]\s{0,20}(?::|=>?)"
    r"|^[ \t]*\"[\w .-]{1,100}\")\s{0,20}\Z",
    re.MULTILINE,
)
_LINE_KEY = re.compile(r"^[ \t]*(?:-[ \t]+)?([a-z_][a-z0-9_-]*)[ \t]*([:=])(?=\s|$)", re.MULTILINE)
_LABELS = frozenset((
    "answer", "assistant", "result", "output", "json", "response", "final", "reply", "solution",
    "note", "data",
))  # fmt: skip
# A closer, unless it is quoted by itself.
_CLOSER = re.compile(r"[\"'`][}\]][\"'`]|[}\]]")
_ENDS_ELEMENT = (",", "]", "}", '"', "'")
_ELEMENT = re.compile(r"(?:^|\n)\s*(?:-?[0-9.]+|true|false|null)\Z")
_SURPLUS = re.compile(r"(?:\s*[}\]])+")
_MORE_DATA = re.compile(
    # a comma and another value or key; a colon and a value; a key in quotes
    r"\s*(?:[,，;]\s*(?:[\"'“‘]|`(?!``)|[-+]?[\d.]|(?:true|false|null)\b"
    r"|[A-Za-z_$][\w$]*\s*[:=](?!/))"
    r"|[:：]\s*[\"'\d\[{]|([\"'])[\w .-]{1,100}\1\s*[:=])"
    # an operator and another value, or a method: an expression
    r"|[ \t]*[|&+*%][ \t]*[\[{(\"'\d]|\.[A-Za-z_]\w{0,80}\("
)
_LONE_COMMA = re.compile(r"\s*,(?=\s*(?:\Z|`{3}|~{3}|</|<\||\n))")
_AFTER_SURPLUS = re.compile(r"[\s;)]*(?:\Z|`{3}|~{3}|</|<\|)")
_PART_OF_TUPLE = re.compile(r"\s*,\s*\)")
_CALL = re.compile(r"(?:\b(new)\s+)?\b([A-Za-z_][\w.]{0,80})\(\s*([^()\n]{0,200}[,=]\s*)?\Z")
_CONSTRUCTORS = frozenset((
    "array", "bytearray", "bytes", "defaultdict", "deque", "dict", "frozenset", "list", "map",
    "namedtuple", "object", "set", "str", "tensor", "tuple", "asarray", "mappingproxy",
))  # fmt: skip
_GLUED = re.compile(r"[\w$%/.-]")
_BOX = re.compile(r"[ \t>]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[ \]\Z")
_QUOTE_MARKS = frozenset("'\"`")
_SPACE_OR_QUOTE = " \t'\"`"
# Brackets that are not empty.
_FILLED = re.compile(r"\{(?!\s*\})|\[(?!\s*\])")
_IN_SENTENCE = re.compile(r"\w,?[ \t]+\Z")
_GOES_ON = re.compile(r"[ \t]+(?!(?:or|and|then)\b)\w")
_SCALARS = re.compile(
    r"\[\s*(?:-?\d[\d.eE+-]*|true|false|null|True|False|None)"
    r"(?:\s*,\s*(?:-?\d[\d.eE+-]*|true|false|null|True|False|None))*\s*\]"
)
# Of a longer line, only this much on either side of brackets is read.
_LINE = 400
_WRAPPER_END = re.compile(r"[\s;)\"'`]*")


def is_mentioned(text: str, start: int, end: int) -> bool:
    """Whether empty brackets are part of a sentence, a checklist or a name."""
    if _GLUED.match(text[start - 1 : start]) or _GLUED.match(text[end : end + 1]):
        return True
    line_start = text.rfind("\n", max(0, start - _LINE), start) + 1 or max(0, start - _LINE)
    line_end = text.find("\n", end, end + _LINE)
    before, after = text[line_start:start], text[end : line_end if line_end >= 0 else end + _LINE]
    if _BOX.match(text, line_start, end) and text[end : end + 1] == " ":
        return True
    if _FILLED.search(before) or _FILLED.search(after):
        return False
    if before[-1:] in _QUOTE_MARKS and before[-1:] == after[:1]:
        return before[:-1].strip(_SPACE_OR_QUOTE) != ""
    return _IN_SENTENCE.search(before) is not None and _GOES_ON.match(after) is not None


def is_list_of_scalars(text: str, start: int, end: int) -> bool:
    """Whether brackets contain only JSON numbers and literals, which prose does not."""
    return _SCALARS.fullmatch(text, start, end) is not None


def step_over_end(text: str, begin: int, start: int, end: int, ledger: RepairLedger) -> int:
    """Return the offset after a surplus comma or surplus closers after the answer.

    The answer spans `start` to `end`; what stands before `begin` does not belong to its text.

    Raises ParseFault at the next token when the document continues after the answer.
    """
    more = _MORE_DATA.match(text, end)
    if more is not None or (_PART_OF_TUPLE.match(text, end) and text[:start].rstrip()[-1:] == "("):
        raise unreadable(_skip(text, end), "the end of the answer")
    surplus = _SURPLUS.match(text, end)
    if surplus is not None:
        first = _skip(text, end)
        # Refuse surplus closers when an element or a key precedes the answer.
        head = _TAG.sub("", text[max(begin, start - 400) : start]).rstrip()
        line = text[max(begin, text.rfind("\n", 0, start) + 1) : start]
        if '"' in line[:-1] or head[-1:] in _ENDS_ELEMENT or _ELEMENT.search(head):
            raise unreadable(_skip(text, 0), "an opening bracket before the first value")
        rest = text[surplus.end() :]
        is_data = rest[:1] in (",", ":") or any(mark in rest for mark in '{}[]"')
        if is_data and _AFTER_SURPLUS.match(rest) is None:
            raise unreadable(first, "the end of the answer")
        ledger.note(first, "surplus_closer")
        return surplus.end()
    comma = _LONE_COMMA.match(text, end)
    if comma is not None:
        ledger.note(comma.end() - 1, "trailing_comma")
        return comma.end()
    return end


def check_before(text: str, begin: int, start: int) -> None:
    """Refuse constructor calls, and keys before the answer whose opening brace is missing."""
    call = _CALL.search(text, max(begin, start - 400), start)
    if call is not None:
        # A constructor, or with other arguments than the answer.
        new, name, arguments = call.groups()
        name = name.rpartition(".")[2]
        if new or arguments or name[:1].isupper() or name in _CONSTRUCTORS:
            raise unreadable(call.start(), "an object or array; this call makes another value")
    key = _KEY_BEFORE.search(text, max(begin, start - 200), start)
    if key is not None:
        raise unreadable(key.start(), "`{` before the first key")


def check_outside(text: str, spans: list[tuple[int, int]]) -> None:
    """Refuse closers outside of the spans: they belong to an unread document."""
    at = 0
    for start, end in [*spans, (len(text), len(text))]:
        for closer in _CLOSER.finditer(text, at, start):
            if closer[0] in "}]":
                raise unreadable(closer.start(), "no closing bracket here")
        at = end


def resembles_yaml(text: str, start: int, end: int) -> bool:
    """Whether the text around the answer consists of `key: value` lines."""
    outside = text[:start] + " " * min(end - start, 1) + text[end:]
    keys = [match for match in _LINE_KEY.finditer(outside) if match[1] not in _LABELS]
    if len(keys) > 1:
        return True
    return any(
        match[2] == ":" and not outside[match.end() : start].strip()
        for match in keys
        if match.end() <= start
    )


def note_surroundings(text: str, start: int, end: int, ledger: RepairLedger) -> None:
    """Record what was skipped before and after the answer."""
    head = _note_and_blank(text[:start], 0, ledger)
    is_noted = head != text[:start]
    wrapper = _WRAPPER.search(head, max(0, len(head.rstrip()) - 200))
    if wrapper is not None:
        ledger.note(_skip(head, wrapper.start()), "wrapper")
        head = head[: wrapper.start()]
    tail = _note_and_blank(text[end:], end, RepairLedger() if is_noted else ledger)
    behind = _WRAPPER_END.match(tail)
    tail_from = behind.end() if behind is not None else 0
    for part, offset in ((head, 0), (tail[tail_from:], end + tail_from)):
        if part.strip("\ufeff\u200b\u00a0 \t\r\n\"'`>\\"):
            ledger.note(offset + len(part) - len(part.lstrip("\ufeff \t\r\n")), "prose")
    if head.rstrip("\\ \t\n")[-1:] in ("'", '"', "`") and not head.strip("\\ \t\r\n\"'`"):
        ledger.note(_skip(head, 0), "quoted_answer")
    if text.startswith("\ufeff"):
        ledger.note(0, "byte_order_mark")
    if not ledger.has(*AROUND):
        # A semicolon, a quote or an odd space next to the answer.
        for part, offset in ((text[:start], 0), (text[end:], end)):
            stray = part.strip(" \t\r\n")
            if stray:
                at = offset + part.index(stray[0])
                ledger.note(at, "prose" if stray.strip() else "no_break_space")


def _note_and_blank(part: str, offset: int, ledger: RepairLedger) -> str:
    """Record the first fence and the first tag of a part; return it with all blanked."""
    for kind, pattern in (("fence", _FENCE), ("tag", _TAG)):
        first = pattern.search(part)
        if first is not None:
            ledger.note(offset + first.start(), kind)
            part = pattern.sub(lambda match: " " * len(match[0]), part)
    return part


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
