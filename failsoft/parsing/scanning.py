"""Scanning for the next token after spaces and comments, with or without recording repairs."""

import re

from failsoft.parsing.faults import RefusalCause, RepairLedger, caused, cut_off, unreadable
from failsoft.parsing.scalars import FULL_WIDTH, ODD_SPACES, SPACE
from failsoft.parsing.thinking import block_at

# Comments that stand for omitted parts of an answer.
_ELISION = re.compile(
    r"^\W*(?:\.\.\.|…|(?:and )?(?:the )?(?:rest|remaining|remainder|others?)\b)"
    r"|(?:\.\.\.|…)\W*$"
    r"|\b(?:(?:unchanged|unmodified|omitted|elided|snip(?:ped)?|truncated|shortened|abbreviated"
    r"|left out|cut here|and so on|for brevity|etc|fill in|placeholders?"
    r"|example values?|(?:repeat|continue)[sd]?"
    r"|no (?:other )?changes|(?:and|plus) \d+ more)\b"
    r"|(?:same|as) (?:as )?(?:above|before|previous)\b"
    r"|(?:add|more|other|further|existing|remaining|additional|similar|same) (?:\w+ )?"
    r"(?:steps?|items?|entries|fields?|keys|values|elements?|objects?|properties|records?|rows?"
    r"|members?|code|structure|content|data)\b)"
    r"|\b(?:restliche[nrs]?|weitere[nrs]?|wie oben|unverändert|usw|reste|inchangés?|idem|resto"
    r"|restantes?|sin cambios|sem alterações|invariat[oi]|und so (?:weiter|fort)|et ainsi de suite"
    r"|y así sucesivamente|e assim por diante|e così via|enzovoort|itd|osv|etcétera|ecc"
    r"|и так далее|и т\. ?д)\b|остальн|省略|其余|其餘|同上|생략"
    r"|等等|以此类推|以此類推|以下同様|等々"
)
_ENDS_STRING = re.compile(r"\"\s*(?:,\s*)?\Z")
_COMMENTS = (("//", "\n"), ("#", "\n"), ("/*", "*/"), ("<!--", "-->"))
# A line break or a tab between two tokens, written as its escape.
_WRITTEN_SPACE = re.compile(r"\\[nrt](?![\w:])|\\[nrt](?=[A-Za-z_]\w*[\"']?\s*:)")
# A closing tag, or a mark of a turn; `<|"|>` is a quote of Gemma.
_CLOSING = re.compile(r"</|<\|[^\W\d]")
_MAY_BE_SPACE = ODD_SPACES | {"\\"}
_ELISION_WINDOW = 400


def is_elision(comment: str) -> bool:
    """Whether a comment stands for something that the model omitted."""
    return _ELISION.search(comment[:_ELISION_WINDOW].lower().strip("/*#<!-> \t\r\n")) is not None


class Scanner:
    """A text, its open brackets, and the ledger of its repairs."""

    def __init__(self, text: str, ledger: RepairLedger) -> None:
        self.text = text
        self.length = len(text)
        self.ledger = ledger
        # The closers of the brackets that are open, the innermost last.
        self.opened: list[str] = []
        # Whether a comment reached the end of the text: it may have swallowed closers.
        self.ended_in_comment = False
        self._searched: dict[str, tuple[int, int]] = {}

    def peek(self, at: int) -> tuple[int, str]:
        """Return the offset of the next token and its first character; "" at the end.

        Full-width punctuation is returned as ASCII. Spaces, comments and punctuation that are
        not JSON are recorded as repairs; a comment that stands for an omission is a fault.
        """
        while True:
            at, char = self._step(at)
            end = self._comment_end(at, char)
            if end is not None:
                self._take_comment(at, end)
                at = end
            elif char in _MAY_BE_SPACE and (width := self._space_width(at, char)):
                self.ledger.note(at, _SPACE_KINDS.get(char, "no_break_space"))
                at += width
            elif char in FULL_WIDTH:
                self.ledger.note(at, "full_width_punctuation")
                return at, FULL_WIDTH[char]
            else:
                return at, char

    def glance(self, at: int) -> tuple[int, str]:
        """Return the next token like `peek`, without recording repairs or raising faults."""
        while True:
            at, char = self._step(at)
            end = self._comment_end(at, char)
            if end is not None:
                at = end if end >= 0 else self.length
            elif char in _MAY_BE_SPACE and (width := self._space_width(at, char)):
                at += width
            else:
                return at, FULL_WIDTH.get(char, char)

    def _space_width(self, at: int, char: str) -> int:
        """Return the width of an odd space; 0 when a backslash is not the escape of one."""
        if char != "\\":
            return 1
        return 2 if _WRITTEN_SPACE.match(self.text, at) else 0

    def _step(self, at: int) -> tuple[int, str]:
        match = SPACE.match(self.text, at)
        at = match.end() if match is not None else at
        if at >= self.length:
            return self.length, ""
        char = self.text[at]
        return at, "" if char in "`~<" and self._ends_here(at, char) else char

    def _ends_here(self, at: int, char: str) -> bool:
        """Whether a closing fence or tag ends the document here."""
        if char == "<":
            return _CLOSING.match(self.text, at) is not None
        return self.text.startswith(char * 3, at)

    def _comment_end(self, at: int, char: str) -> int | None:
        """Return the end of a comment; -1 when it is not closed, None without a comment."""
        if char not in ("/", "#", "<"):
            return None
        block = block_at(self.text, at) if char == "<" else None
        if block is not None:
            return block
        for opening, closing in _COMMENTS:
            if self.text.startswith(opening, at):
                end = self._find(closing, at + len(opening))
                if closing == "\n":
                    return self.length if end < 0 else end
                return end if end < 0 else end + len(closing)
        return None

    def _take_comment(self, at: int, end: int) -> None:
        if end < 0:
            raise cut_off(at, "the end of this comment")
        if self.text[at] == "<" and not self.text.startswith("<!--", at):
            self.ledger.note(at, "think_block")
            return
        if is_elision(self.text[at:end]):
            raise caused(at, RefusalCause.LEFT_OUT)
        if self.text.count('"', at, end) % 2 and _ENDS_STRING.search(self.text, at, end):
            raise unreadable(at, "a value; this comment may be a string without its opening quote")
        self.ledger.note(at, "comment")
        self.ended_in_comment = end >= self.length and not self.text.endswith(("*/", "-->"))

    def _find(self, needle: str, at: int) -> int:
        """Return the result of `str.find`, never searching the same part of the text twice."""
        searched_from, offset = self._searched.get(needle, (self.length + 1, -1))
        if searched_from <= at and (offset < 0 or at <= offset):
            return offset
        offset = self.text.find(needle, at)
        self._searched[needle] = at, offset
        return offset


_SPACE_KINDS = {"\\": "escaped_space", "\ufeff": "byte_order_mark"}
