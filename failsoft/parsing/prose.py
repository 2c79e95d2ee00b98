"""What the text around an answer says about it: an example, a refusal, a program, a call.

A reading may drop prose only if it neither declines nor announces an example, and nothing
around the answer is another part of the same record or program.
"""

import re
from typing import NamedTuple

from failsoft.events import ParseErrorType
from failsoft.parsing.faults import ParseFault, RefusalCause, caused
from failsoft.parsing.makers import FIRST_SENTENCES, MAKERS, phrases

_DECLINES = re.compile(phrases("declines"))
_REFUSES = re.compile(phrases("refuses", instead="declines"))
# Of the languages that know what is refused from what is only limited.
_REFUSES_OUTRIGHT = re.compile(phrases("refuses"))
_REFUSES_BEHIND = re.compile(phrases("refuses_behind"))
_DELIVERS = re.compile(phrases("delivers"))
_LEAVES_OUT = re.compile(phrases("leaves_out"))
_MENTIONS = re.compile(MAKERS["mentions"]["before"])
# The sentence of a value begins before it; it goes on behind it, on the same line.
_BEGUN = re.compile(r"[^\W_],?[ \t]+[`'\"(*]{0,4}\Z")
_BEGINS = re.compile(r"[!?;。！？：；\n]|[.:](?= )")
_ENDS_LATER = re.compile(r"[`'\")*]{0,4},?[ \t]+(?!(?:or|and|then)\b)[^\W\d_]")
_MENTIONS_BEHIND = re.compile(rf"[`'\")*]{{0,4}},?[ \t]+{MAKERS['mentions']['behind']}")
# It is a question; what is quoted in it may be one without that.
_ASKS = re.compile(r"[`'\")*]{0,4}[ \t]?([^\W\d_])[^.!?,:;\n\"“”„«»「」]{0,80}[?？؟]")
# What no sentence of its language begins with.
_PARTICLES = "吗嗎或をはがの을를"
_TEMPLATES = phrases("templates")
_EXAMPLES = re.compile(f"{phrases('examples')}|{_TEMPLATES}")
_DISCLAIMS = re.compile(f"{phrases('disclaims')}|{_TEMPLATES}")
_MARKUP = re.compile(r"</?[A-Za-z_][^<>\n]{0,200}>|<\|[^|\n]{0,200}\|>|(?:`{3,}|~{3,})[\w+.-]*")
_SPEAKERS = re.compile(
    "|".join(
        rf"(?!{row['unless']}).{{0,40}}?(?:{row['who']}).{{0,30}}?(?:{row['gives']})"
        for row in MAKERS["speakers"]
    )
)
_CLAUSE_END = re.compile(r"[.!?,;](?=\s)|[。！？，；\n]")
_LEAD = " \t\r\n:：*`'\"("
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？؟])\s*(?=\S)|\n\s*\n(?=\s*\S)")
_REST = 2_000


def check_prose(text: str, start: int, end: int, *, is_empty: bool) -> None:
    """Refuse an answer that the text around it declines or calls an example."""
    announced = announcement(text, 0, start, is_empty=is_empty)
    if announced is not None:
        raise announced
    tail = _spoken(text[end : end + FIRST_SENTENCES])
    if end + FIRST_SENTENCES < len(text):
        # A sentence that is cut here says nothing.
        tail = tail[: max(tail.rfind(mark) for mark in ".!?。！？\n") + 1] or tail
    if (_DECLINES if is_empty else _REFUSES_BEHIND).search(tail):
        raise refusal()
    disclaimed = _DISCLAIMS.search(tail)
    if disclaimed is not None:
        raise caused(end + disclaimed.start(), RefusalCause.EXAMPLE)
    # Behind a line break, no phrase begins the text: dots that go on mean nothing in the head.
    head = "\n" + _spoken(text[:start])
    behind, before = _LEAVES_OUT.search(tail), _LEAVES_OUT.search(head, 1)
    if behind is not None or before is not None:
        raise caused(end if behind is not None else 0, RefusalCause.LEFT_OUT)
    begun = _BEGUN.search(text, max(0, start - 20), start) is not None
    asks = _ASKS.match(text, end)
    is_example = asks is not None and (asks[1] in _PARTICLES or (begun and asks[1].islower()))
    if begun and _ENDS_LATER.match(text, end):
        said = _BEGINS.split(text[max(0, start - 200) : start].lower())[-1]
        is_example |= _MENTIONS.search(said) is not None or _MENTIONS_BEHIND.match(tail) is not None
    if is_example:
        raise caused(start, RefusalCause.EXAMPLE)


def announcement(text: str, begin: int, start: int, *, is_empty: bool = False) -> ParseFault | None:
    """Return why what begins at `start` is no answer, if the text from `begin` says so.

    It declines, or it announces an example; an empty answer does not make up for refusing.
    """
    head = _spoken(text[begin:start])
    if not head.strip():
        return None
    sentence = max((gap.end() for gap in _SENTENCE_END.finditer(head.rstrip())), default=0)
    example = _EXAMPLES.search(head, sentence)
    at = _attribution(head) if example is None else example.start()
    declined = (_REFUSES if at is None else _DECLINES).search(head[:FIRST_SENTENCES])
    is_final = at is not None or (is_empty and _REFUSES_OUTRIGHT.search(head[:FIRST_SENTENCES]))
    if declined is not None and (is_final or not _DELIVERS.search(head, declined.end())):
        return refusal()
    return None if at is None else caused(start - len(head) + at, RefusalCause.EXAMPLE)


def _attribution(head: str) -> int | None:
    """Return where the last clause of a head begins, if it gives what follows to others."""
    lead = head.rstrip(_LEAD)
    far = max(0, len(lead) - 300)
    begin = max((end.end() for end in _CLAUSE_END.finditer(lead, far)), default=far)
    clause = lead[begin:].lstrip(_LEAD)
    is_sentence = clause[-1:] in (".", "!", "?")
    return None if is_sentence or not _SPEAKERS.match(clause) else len(lead) - len(clause)


def refusal() -> ParseFault:
    return ParseFault(0, "an answer; the model declined", ParseErrorType.REFUSAL)


def _spoken(text: str) -> str:
    """Return the beginning and the end of a text in lower case, without markup."""
    if len(text) > 2 * _REST:
        text = text[:_REST] + " " + text[-_REST:]
    spoken = _MARKUP.sub(lambda mark: " " * len(mark[0]), text).lower()
    return spoken if len(spoken) == len(text) else text


# A statement that is a whole line: an assignment, a call; a line of a shell, a header.
_STATEMENT = re.compile(
    r"^[ \t]{0,40}(?:(?:const|let|var)[ \t]+)?[A-Za-z_$][\w.$]{0,80}"
    r"(?:(?:\[[^\]\n]{0,80}\]){0,4}[ \t]*(?:[-+*/|&%]|\*\*|//)?=(?![=>])[ \t]*[^\s=]"
    r"|(?:\.[A-Za-z_]\w*)?\([^\n]{0,200}\)[ \t]*(?:;[ \t]*)?$)"
    r"|^(?:<{7}|@@ -\d|\*{3} (?:Begin|Add|Update) )|<<[-~]?[ \t]?['\"]?[A-Z]{2,20}\b"
    r"|^(?:>>> (?![\[{])|(?:In|Out) ?\[\d+\]:|irb\(|[\w.@~/:-]{0,80}\$ [a-z]|PS [A-Z]:)"
    r"|^(?:HTTP/\d[\d.]* \d{3}\b|[A-Z]{3,7} \S{1,400} HTTP/\d|(?i:content-type): ?\w+/)"
    r"|^---[ \t]*\n[a-z_-]{1,80}: |^Traceback \(most"
    r"|^(?:From|To|Date): (?:[^@\n]{1,200}@[^\n]{1,200}\n(?:From|To|Date)|[^\n]{1,400}\nSubject): ",
    re.MULTILINE,
)
# An attribute of the value, or another statement on its line.
_GOES_ON = re.compile(
    r"\)?\.[A-Za-z_]\w{0,80}[ \t]*(?:;|$)"
    r"|[ \t)]*;[ \t]*[A-Za-z_$][\w.$]{0,80}(?:(?:\[[^\]\n]{0,80}\])?[ \t]*[-+*/|&%]?=(?![=>])|\()",
    re.MULTILINE,
)
# The answer is the value of an option or an attribute, a cell of a table, or a literal of SQL;
# what is printed or compared, passed to the method of a result, part of a URL, or one of
# several assignments on a line; the body of a type, or a value of one.
_ARGUMENT = re.compile(
    r"(?:^|(?<=\s))--?[A-Za-z][\w-]{0,80}[ =]['\"]?\Z"
    r"|^[ \t]*\|(?:[^|\n]*\w[^|\n]*\|[^\n]*|[ \t`]*)\Z"
    r"|<[A-Za-z][^<>\n]{0,200}\s[\w:-]{1,80}=['\"]\Z"
    r"|^[ \t]*(?:SELECT\b|(?i:insert\s+into\b|update\s+\S{1,80}\s+set\b|values\s*\())"
    r"[^:\n]*['(]\s*\Z"
    r"|^[ \t$>]{0,8}(?:echo|printf)[ \t][^\n]{0,200}\Z|\)\.\w{1,80}\(\s*\Z"
    r"|^(?![ \t]*=)[^\n]{1,400}[=!]=[ \t]*\Z"
    r"|^[ \t]*(?:export )?(?:interface|struct|type)[ \t]+[A-Z]\w{0,80}[ \t]*=?[ \t]*\Z"
    r"|^[ \t]*(?:(?:const|let|val|var) [^=\n]{1,200}=|\w{1,80} ?:=) *[A-Za-z_][\w.\[\]]{0,80} ?\Z"
    r"|^[ \t$]*(?:export|set) \w{1,80}=['\"]?\Z|\\(?!boxed)[A-Za-z]{2,30}\Z"
    r"|\b(?:[a-z][a-z+.-]{1,20}://|data:\w+/)[^\s'\"`]{1,400}\Z"
    r"|(?<![^\s,])[\w.]{1,80}=[^\s=]\S{0,200}[ \t,](?:[^\n]*[\s,])?"
    r"(?!(?:\w*_)?(?:answer|output|plan|result)=)[\w.]{1,80}=\s*\Z",
    re.MULTILINE,
)
# In the fence of a program, a line that begins with two words: a command, a definition.
_PROGRAM = re.compile(
    r"(?:```|~~~)[ \t]*(?i:(?:ba|z|power)?sh(?:ell)?|console|sql|http|py(?:thon3?)?|[jt]sx?"
    r"|(?:java|type)script|go|rust|java|kotlin|ruby|php|c(?:s|sharp|pp)?|swift)\b"
)
_TWO_WORDS = re.compile(
    r"^[ \t]*(?!(?:const|let|var|export|return|await|import|from)\b)[\w.$]{1,80}[ \t]+['\"$\w-]",
    re.MULTILINE,
)
_IN_FENCE = re.compile(
    r"^[ \t]{0,40}"
    r"(?:(?:for|while|if|elif|else|with|try|def|class|function)\b[^\n]{0,200}[:{][ \t]*$"
    r"|(?:del|assert|raise|throw|return|yield)\b[ \t]+\S)",
    re.MULTILINE,
)
_FENCE = re.compile(r"`{3}|~{3}")
# In the fence of a configuration, the answer is the value of one key.
_SETTING = re.compile(r"(?:```|~~~)[ \t]*(?i:toml|ini|hcl|terraform|tf)\b[^{\[]*=\s*\Z")


def check_program(text: str, start: int, end: int) -> None:
    """Refuse an answer that is the first literal of a program."""
    line = text.rfind("\n", 0, start) + 1
    fence = _FENCE.search(text, end)
    opened = max(text.rfind("```", 0, start), text.rfind("~~~", 0, start))
    statements = [_STATEMENT.search(text, 0, line), _STATEMENT.search(text, end)]
    statements.append(_GOES_ON.match(text, end))
    statements.append(_ARGUMENT.search(text, max(line, start - 400), start))
    if opened >= 0:
        statements.append(_SETTING.match(text, opened, start))
    if fence is not None and opened >= 0:
        statements.append(_IN_FENCE.search(text, end, fence.start()))
    if opened >= 0 and _PROGRAM.match(text, opened):
        statements.append(_TWO_WORDS.search(text, opened, start))
    places = [statement.start() for statement in statements if statement is not None]
    if places:
        raise caused(min(places), RefusalCause.PROGRAM)


_ELEMENT = re.compile(
    r"<([A-Za-z_][\w:.-]{0,80})(=[^<>\n]{0,200}|\s[^<>\n]{0,200})?>\s*(?:(?:`{3,}|~{3,})\w*\s*)?\Z"
)
_OTHERS = re.compile(
    rf"(?:{'|'.join(MAKERS['others']['marks'])})\s*(?:(?:`{{3,}}|~{{3,}})\w*\s*)?\Z", re.MULTILINE
)
_LEAF = re.compile(
    r"<([A-Za-z_][\w:.-]{0,80})(?:[\s=][^<>\n]{0,200})?>(?=[^<]*?[^\s<])[^<]*</\1\s*>"
)
# A page; the name of a tool on the line above its arguments.
_PAGE = re.compile(r"\s*(?i:<!doctype\s+html\b|<html\b)")
_NAME_LINE = re.compile(
    r"\s*(?:<\|assistant\|>\s*)?"
    r"(?:add|ask|book|browse|call|check|click|close|convert|copy|create|delete|download|edit|execute"
    r"|fetch|find|get|insert|list|load|lock|look|make|move|navigate|open|post|print|put|query|read"
    r"|remove|rename|run|save|search|select|send|set|start|stop|submit|translate|update|upload|use"
    r"|view|web|write)_(?!of_|\w*(?:answer|data|final|format|json|object|output|plan|reply|response"
    r"|result))\w{1,80}[ \t]*\n\s*"
)
_PARAMETERS = frozenset({"parameter", "param", "argument", "arg", "arg_value", "arg_key"})
_REMARKS = frozenset(MAKERS["remarks"]["elements"].split())


def check_elements(text: str, start: int, end: int) -> None:
    """Refuse an answer that somebody else gave, or that is one element of a record."""
    other = _OTHERS.search(text, max(0, start - 300), start)
    if other is not None:
        raise caused(other.start(), RefusalCause.EXAMPLE)
    if _PAGE.match(text, 0, start):
        raise caused(0, RefusalCause.PROGRAM)
    if _NAME_LINE.fullmatch(text, 0, start):
        raise caused(0, RefusalCause.CALL_MARKUP)
    element = _ELEMENT.search(text, max(0, start - 500), start)
    if element is None:
        return
    name, attributes = element[1].lower(), element[2] or ""
    if name in _PARAMETERS or attributes.startswith("=") or "name=" in attributes:
        raise caused(element.start(), RefusalCause.CALL_MARKUP)
    for window in ((0, start), (end, len(text))):
        for leaf in _LEAF.finditer(text, *window):
            if leaf[1].lower() not in _REMARKS:
                raise caused(leaf.start(), RefusalCause.CALL_MARKUP)


_CALLED = re.compile(r"([\w$.]{1,80})\s*\(\s*\Z")
_WORD = re.compile(r"[^\W\d_]\w*")
_NEUTRAL = frozenset(MAKERS["remarks"]["neutral_words"].split())


class Label(NamedTuple):
    """What stands before a value: the function it is passed to, its element, its words."""

    called: str
    element: str
    words: frozenset[str]

    def fits(self, other: "Label") -> bool:
        """Whether two equal values under these labels are one answer."""
        return (
            self.called == other.called
            and self.element == other.element
            and (not self.words or not other.words or self.words == other.words)
        )


def label(text: str, begin: int, start: int) -> Label:
    """Return the label of the value at `start`; the text before it begins at `begin`."""
    head = text[max(begin, start - 300) : start]
    called, element = _CALLED.search(head), _ELEMENT.search(head)
    spoken = _MARKUP.sub(" ", head).strip()
    line = re.split(r"[\n.;!?]", spoken.rstrip(":` \t\n"))[-1]
    words = frozenset(_WORD.findall(line.lower())) - _NEUTRAL
    return Label(called[1] if called else "", element[1] if element else "", words)
