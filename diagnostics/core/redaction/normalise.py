"""A second look at a text: what it says once disguises are taken off.

Rules match on this view, the text itself is masked: a disguise never hides a secret, and
text that holds none is kept as it came. The view is ASCII bytes, so that an offset is the
same in bytes and in characters.
"""

import codecs
import re
import tomllib
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from html import unescape
from itertools import accumulate
from pathlib import Path

GONE = "\0"
# Zero-width, joiners, direction marks, soft hyphen, variation selectors, tags.
INVISIBLE = (
    0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x2800, 0x3164,
    0xFEFF, 0xFFA0, *range(0x200B, 0x2010), *range(0x202A, 0x202F),
    *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), *range(0x180B, 0x180E),
    *range(0x0300, 0x0370), *range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0),
)  # fmt: skip
LOOK_ALIKES_FILE = Path(__file__).with_name("look_alikes.toml")
LETTERS = (*range(0x00A0, 0x0250), *range(0x1E00, 0x1F00), *range(0x2000, 0x2200))
COMPATIBLE = (
    *range(0x02B0, 0x0300), *range(0x1D00, 0x1DC0), *range(0x2460, 0x24F0),
    *range(0x2C60, 0x2C80), *range(0xFF00, 0xFFF0), *range(0x1D400, 0x1D800),
    *range(0x1F100, 0x1F170),
)  # fmt: skip
# Decimal digits of other scripts.
DIGITS = (*range(0x0660, 0x1A00), *range(0xA620, 0xABFA), *range(0x1D7CE, 0x1D800))
# One group around all, so that `split` gives text and escapes by turns. Bounded runs keep
# the search linear on a page of backslashes.
ESCAPE = re.compile(
    rb"([\x00\\%&](?:(?<=\x00)\x00*"
    rb"|(?<=\\)\\{0,7}(?:u\{0{0,4}[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}"
    rb"|x[0-9a-fA-F]{2}|[nrtbf\"'/`])"
    rb"|(?<=%)(?:25){0,3}[0-9a-fA-F]{2}"
    rb"|(?<=&)(?:amp;){0,3}(?:#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|quot|apos|lt|gt|amp"
    rb"|equals|colon|sol|lowbar|hyphen|commat|period|num|nbsp);))"
)
# What a text must hold to have a decoded view, as RE2; the easy ones are all backslashes.
HINT = rb"\x00|\\[uUx]|%[0-9a-fA-F]{2}|&(?:#[0-9xX]|[a-z]{2,8};)"
EASY_HINT = rb"\\[nrtbf\"'/`\\]"
EASY = ((rb"\\", b"\\"),) * 3 + (
    (rb"\n", b"\n"), (rb"\"", b'"'), (rb"\'", b"'"), (rb"\/", b"/"), (rb"\t", b"\t"),
    (rb"\r", b"\r"), (rb"\b", b" "), (rb"\f", b" "), (rb"\`", b"`"),
)  # fmt: skip
CODE = re.compile(rb"\\+(?:u\{0*([0-9a-fA-F]+)\}|[uUx]([0-9a-fA-F]+))")
PLAIN_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b" ", b"f": b" "}


def _fold(code: int) -> str | None:
    folded = unicodedata.normalize("NFKD", chr(code))[:1]
    return folded if folded.isascii() and folded.isprintable() else None


def _build_table() -> dict[int, str]:
    content = tomllib.loads(LOOK_ALIKES_FILE.read_text(encoding="utf-8"))
    table = {
        ord(odd): plain
        for plain, looks in content["look_alikes"].items()
        for odd in looks
    }
    for code in (*LETTERS, *COMPATIBLE):
        plain = _fold(code)
        if plain:
            table.setdefault(code, plain)
    for code in DIGITS:
        digit = unicodedata.digit(chr(code), None)
        if digit is not None:
            table.setdefault(code, str(digit))
    return table | dict.fromkeys(INVISIBLE, GONE)


TABLE = _build_table()


ONE_TO_ONE = {chr(code): plain for code, plain in TABLE.items()}
PRINTABLE = frozenset(map(chr, range(128)))
# Up to so many different letters, replacing each is faster than walking through all.
FEW = 48


class View:
    """ASCII bytes to match on, and the way back to offsets in the text.

    `parts` are the plain stretches and escapes of the text by turns, `said` what each of
    them says; without parts an offset is the same in both.
    """

    __slots__ = ("_parts", "_said", "_starts", "body")

    def __init__(
        self,
        body: bytes,
        parts: list[bytes] | None = None,
        said: list[bytes] | None = None,
    ) -> None:
        """Take the view and how it came to be."""
        self.body = body
        self._parts = parts
        self._said = said or []
        self._starts: tuple[list[int], list[int]] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether an offset is the same in view and text."""
        return self._parts is None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Translate a span of the view into a span of the text."""
        if self._parts is None:
            return start, end
        return self._locate(start)[0], self._locate(end - 1)[1]

    def _locate(self, at: int) -> tuple[int, int]:
        if self._starts is None:
            self._starts = (_sums(self._said), _sums(self._parts or []))
        begins, origins = self._starts
        piece = bisect_right(begins, at) - 1
        if piece % 2:
            return origins[piece], origins[piece + 1]
        origin = origins[piece] + at - begins[piece]
        return origin, origin + 1


def _sums(parts: list[bytes]) -> list[int]:
    return [0, *accumulate(map(len, parts))]


def _fold_error(error: UnicodeError) -> tuple[bytes, int]:
    """Stand in for what is not ASCII, one byte for one character."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    run = error.object[error.start : error.end]
    return run.translate(TABLE).encode("ascii", "replace"), error.end


codecs.register_error("failsoft-fold", _fold_error)


def fold(text: str) -> bytes:
    """Fold letters one to one: full-width, accents, look-alikes; nothing is decoded."""
    if text.isascii():
        return text.encode()
    odd = set(text).difference(PRINTABLE)
    if len(odd) <= FEW:
        for letter in odd:
            text = text.replace(letter, ONE_TO_ONE.get(letter, "?"))
    return text.encode("ascii", "failsoft-fold")


def without_backslashes(flat: bytes) -> bytes:
    """Decode what needs no table: escapes of one letter, however often escaped."""
    for escaped, plain in EASY:
        flat = flat.replace(escaped, plain)
    return flat


def decode(flat: bytes) -> View | None:
    """Drop what is invisible and decode escapes; None when there is nothing to do."""
    parts = ESCAPE.split(flat)
    if len(parts) == 1:
        return None
    said = parts.copy()
    said[1::2] = map(_decode, parts[1::2])
    return View(b"".join(said), parts, said)


def normalise(text: str) -> bytes:
    """Give the fully decoded view of `text` alone."""
    flat = fold(text)
    view = decode(flat)
    return flat if view is None else view.body


@lru_cache(maxsize=8192)
def _decode(escape: bytes) -> bytes:
    first = escape[:1]
    if first == b"\0":
        return b""
    if first == b"%":
        return _to_ascii(int(escape[-2:], 16))
    if first == b"&":
        return _decode_entity(escape)
    code = CODE.fullmatch(escape)
    if code:
        return _to_ascii(int(code[1] or code[2], 16))
    return PLAIN_ESCAPES.get(escape[-1:], escape[-1:])


def _decode_entity(entity: bytes) -> bytes:
    text = entity.decode("ascii")
    for _ in range(4):
        text = unescape(text)
    return _to_ascii(ord(text)) if len(text) == 1 else b"?"


def _to_ascii(code: int) -> bytes:
    if code > 0x10FFFF:
        return b"?"
    folded = chr(code).translate(TABLE)
    return b"" if folded == GONE else folded.encode("ascii", "replace")
