"""Backslashes in strings, judged by the whole string: it was escaped, or it was not.

1. A backslash that begins no escape, or an escape that nobody means, is literal (`\\d`, `\\frac`).
2. Then every backslash of its string is, if each can be: `\\times` beside `\\alpha`, `C:\\new`.
   One that can only be an escape leaves no single reading.
3. A string without either was escaped. Beside strings that were not, its tabs and line breaks are
   in doubt where they spell a part of a path or a formula.
"""

import re
from collections.abc import Iterator
from functools import cached_property

from failsoft.parsing.faults import RefusalCause, caused
from failsoft.parsing.makers import MAKERS

_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r?\n)|(.)|\Z)|([\x00-\x1f])", re.DOTALL
)
# Any other escaped character is itself.
SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTES = "'`“”„‘’‚"
_SURROGATE = re.compile("[\ud800-\udfff]")
_COMMANDS = frozenset(MAKERS["tex"]["commands"].split())
_WORDS = frozenset(MAKERS["tex"]["words"])
_CONTROL = re.compile(r"\\[bf]")
# What a backslash is by itself. `\\u{1F600}` is a character to JavaScript only, and eight digits to
# Python only, `\\033` and `\\e[` to a terminal. A word is judged by what it spells; a mark that
# Markdown and TeX escape alike, by its string.
_BACKSLASH = re.compile(
    rf"\\(?:(?P<quote>[\"{_QUOTES}/]|\r?\n)|(?P<escape>\\|u[0-9a-fA-F]{{4}}|x[0-9a-fA-F]{{2}})"
    r"|(?P<broken>u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]|U[0-9a-fA-F]{8}|0[0-7]{2}|e\[)"
    r"|(?P<mark>[_&#!~@%])"
    r"|(?P<word>[bfnrt][A-Za-z]*)|(?P<literal>.?))",
    re.DOTALL,
)
_DRIVE = re.compile(r"(?:\A|[\s'\"(=;,])[A-Za-z]:(\\)[bfnrt]\w")
# A path and nothing else: from a drive, from `.`, or to a file. Names that begin like a line break
# or a tab read as names (`new`, not `nsrc`) and neither hold spaces nor follow a file: else a break
# may be meant.
_LETTER = r"[^\\/:*?\"<>|{}$^=;.\x00-\x1f]"
_PATH = re.compile(
    r"(?:(?P<drive>[A-Za-z]:)|\.{1,2}|(?=.*\.\w{1,12}\Z)[\w-]+)"
    rf"(?:\\(?:(?:[bfr][a-z]|n[aeiouy]|t(?:[aehioruwy]|mp))(?:(?! ){_LETTER})*"
    rf"|(?![bfnrt_])\w{_LETTER}*|(?=\.))(?:\.(?:{_LETTER}|\.)*(?=\\[^bfnrt]|\Z))?)+"
)
# Where a line break or a tab is in doubt: beside a drive, a folder, a formula or a carriage return,
# and in a row of names.
_PATH_OR_FORMULA = re.compile(
    r"(?:\A|[\s'\"(=;,])(?:[A-Za-z]:|\.{1,2}|\\)\\|\$|\\[A-Za-z]+\{|\\[(\[]|(?<!\\)\\r[a-z]{2}"
    r"|\A(?=.*(?<!\\)\\t[a-z]{2})[\w.-]+(?:\\[\w.-]+){2,}\Z"
)
_RUBBED_OUT = re.compile(r"\\b\\b")
_ENDS_WORD = re.compile(r"[^\s{(\[$=+*/^_<>|&~-]")


class Escapes:
    """The escapes of the strings of one document, in their order."""

    def __init__(self, text: str, *, as_written: bool = False) -> None:
        """Begin the document `text`; of valid JSON that is read `as_written`, judge nothing."""
        self._text = text
        self._as_written = as_written
        # The first string that was not escaped, and the first escape that may be none.
        self._literal: int | None = None
        self._doubtful: int | None = None

    def decode(self, raw: str, at: int, start: int) -> "_DecodedString":
        """Return the text between the quotes of a string that opens at `at`, decoded.

        Raises ParseFault where a backslash has no single reading.
        """
        is_literal = not self._as_written and self._judge(raw, start)
        decoded = _DecodedString(raw, is_literal=is_literal)
        if _SURROGATE.search(decoded.text):
            raise caused(at, RefusalCause.HALF_CHARACTER)
        return decoded

    def _judge(self, raw: str, start: int) -> bool:
        """Return whether the backslashes of a string are literal."""
        first: dict[str, int] = {}
        for kind, offset in _kinds(raw):
            first.setdefault(kind, start + offset)
        is_literal = "literal" in first or ("either" in first and self._is_unescaped)
        drive = None if is_literal else _DRIVE.search(raw)
        if drive is not None:
            raise caused(start + drive.start(1), RefusalCause.BACKSLASH)
        broken = first.get("broken", None if is_literal else first.get("mark"))
        if broken is not None:
            raise caused(broken, RefusalCause.BACKSLASH)
        if is_literal and "escape" in first:
            raise caused(first["literal"], RefusalCause.BACKSLASH)
        self._compare(raw, start, is_literal=is_literal)
        return is_literal

    def _compare(self, raw: str, start: int, *, is_literal: bool) -> None:
        """Refuse doubtful escapes beside strings that were not escaped."""
        if is_literal:
            self._literal = start
        elif self._doubtful is None:
            doubtful = next(_doubtful_breaks(raw), None)
            self._doubtful = None if doubtful is None else start + doubtful
        if self._literal is not None and self._doubtful is not None:
            raise caused(self._doubtful, RefusalCause.BACKSLASH)

    @cached_property
    def _is_unescaped(self) -> bool:
        return _is_unescaped(self._text)


def _kinds(raw: str) -> Iterator[tuple[str, int]]:
    """Yield the kind of each backslash in a string: literal, escape, either, broken or quote."""
    path = _PATH.fullmatch(raw)
    for match in _BACKSLASH.finditer(raw):
        kind, word = match.lastgroup or "", match["word"]
        if path is not None and match[0].startswith(("\\x", "\\0")):
            kind = "literal"
        elif word is not None and path is not None:
            is_break = word[0] in "nt" and not (path["drive"] and word[0] == "t")
            kind = "either" if is_break else "literal"
        elif word is not None:
            kind = _kind_of_word(word, raw, match)
        yield kind, match.start()


def _kind_of_word(word: str, text: str, match: re.Match[str]) -> str:
    if word[0] == "b":
        return "broken" if _RUBBED_OUT.match(text, max(0, match.start() - 2)) else "literal"
    if _is_command(word, text, match.start()):
        return "literal" if word[0] == "f" else "either"
    return "broken" if word[0] == "f" and len(word) > 1 else "escape"


def _is_command(word: str, text: str, at: int) -> bool:
    """Whether letters behind a backslash are a command of TeX; `\\ni.e.` begins a line."""
    return word in _COMMANDS or (word in _WORDS and not _ENDS_WORD.match(text, at - 1))


def _is_unescaped(text: str) -> bool:
    """Whether no backslash of a document can only be an escape, and some can only be literal."""
    kinds = {
        _kind_of_word(match["word"], text, match) if match["word"] else match.lastgroup
        for match in _BACKSLASH.finditer(text)
    }
    return "literal" in kinds and kinds <= {"literal", "either", "quote", "mark"}


def _doubtful_breaks(raw: str) -> Iterator[int]:
    """Yield the line breaks and tabs before a letter that may be parts of a path or a formula."""
    is_likely = _PATH_OR_FORMULA.search(raw) is not None
    for match in _BACKSLASH.finditer(raw):
        word = match["word"] or ""
        is_doubtful = is_likely or word in _COMMANDS or word in _WORDS
        if (is_doubtful and len(word) > 1) or match[0].startswith("\\x"):
            yield match.start()


class _DecodedString:
    """The raw text between two quotes, decoded; its repairs as kind and offset."""

    def __init__(self, raw: str, *, is_literal: bool) -> None:
        self.repairs: dict[str, int] = {}
        self._is_literal = is_literal
        text = _ESCAPE.sub(self._decode, raw)
        # Two halves become one character.
        self.text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    def _note(self, offset: int, kind: str) -> None:
        self.repairs.setdefault(kind, offset)

    def _decode(self, match: re.Match[str]) -> str:
        unicode, hexadecimal, line_break, char, control = match.groups()
        at = match.start()
        if control is not None:
            self._note(at, "raw_newline" if control in "\r\n" else "control_character")
            return control
        if line_break is not None:
            self._note(at, "line_continuation")
            return ""
        if unicode is not None:
            return chr(int(unicode, 16))
        if hexadecimal is not None and not self._is_literal:
            self._note(at, "hex_escape")
            return chr(int(hexadecimal, 16))
        return self._decode_short(char or match[0][1:], at)

    def _decode_short(self, char: str, at: int) -> str:
        if len(char) == 1 and char in _QUOTES:
            self._note(at, "escaped_quote")
            return char
        if not self._is_literal or char == '"':
            return SHORT_ESCAPES.get(char, char)
        self._note(at, "kept_backslash")
        return "\\" + char


def has_doubtful_escapes(text: str) -> bool:
    """Whether a text may contain `\\b` or `\\f`, which are rarely meant."""
    # One character is found much faster than two, and two by a pattern than by `in`.
    return "\\" in text and _CONTROL.search(text) is not None


def is_written_as_tex(text: str) -> bool:
    """Whether the escapes of valid JSON spell commands of TeX, several of them and nothing else."""
    return has_doubtful_escapes(text) and _count_commands(text) > 1 and _is_unescaped(text)


def doubtful_in_valid(text: str) -> int | None:
    """Return the first `\\b` or `\\f` before a letter in valid JSON; None without one.

    Raises ParseFault at it where the escapes of the text spell several commands of TeX.
    """
    if not has_doubtful_escapes(text):
        return None
    words = [match for match in _BACKSLASH.finditer(text) if len(match["word"] or "") > 1]
    first = next((match.start() for match in words if match["word"][0] in "bf"), None)
    if first is not None and _count_commands(text) > 1:
        raise caused(first, RefusalCause.BACKSLASH)
    return first


def _count_commands(text: str) -> int:
    words = (match["word"] for match in _BACKSLASH.finditer(text))
    return sum(word in _COMMANDS or word in _WORDS for word in words)
