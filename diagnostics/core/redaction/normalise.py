"""A second look at a text: what it says once disguises are taken off.

Rules match on this view, the text itself is masked: a disguise never hides a secret, and
text that holds none is kept as it came. The view is ASCII bytes, so that an offset is the
same in bytes and in characters.
"""

import re
import tomllib
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, field
from html import unescape
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
COMPATIBLE = (*range(0x2460, 0x24F0), *range(0xFF00, 0xFFF0), *range(0x1D400, 0x1D800))
# Bounded runs keep the search linear on a page of backslashes.
ESCAPE = re.compile(
    rb"\x00+"
    rb"|\\{1,8}(?:u\{0{0,4}([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))"
    rb"|\\{1,8}([nrtbf\"'/`])"
    rb"|%(?:25){0,3}([0-9a-fA-F]{2})"
    rb"|(&(?:amp;){0,3}(?:#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|quot|apos|lt|gt|amp"
    rb"|equals|colon|sol|lowbar|hyphen|commat|period|num|nbsp);)"
)
HINTS = (b"\0", b"\\", b"%", b"&")
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
    return table | dict.fromkeys(INVISIBLE, GONE)


TABLE = _build_table()


@dataclass(frozen=True, slots=True)
class View:
    """ASCII bytes to match on, and the way back to offsets in the text.

    Piece i begins at `starts[i]` in the view and `origins[i]` in the text; `widths[i]` is
    the length in the text of a decoded escape, 0 for plain text of equal length.
    """

    body: bytes
    starts: list[int] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Translate a span of the view into a span of the text."""
        if not self.starts:
            return start, end
        return self._locate(start)[0], self._locate(end - 1)[1]

    def _locate(self, at: int) -> tuple[int, int]:
        piece = bisect_right(self.starts, at) - 1
        if self.widths[piece]:
            return self.origins[piece], self.origins[piece] + self.widths[piece]
        origin = self.origins[piece] + at - self.starts[piece]
        return origin, origin + 1


def view_flat(text: str) -> View:
    """Fold letters one to one: full-width, accents, look-alikes; nothing is decoded."""
    if text.isascii():
        return View(text.encode("ascii"))
    return View(text.translate(TABLE).encode("ascii", "replace"))


def view_decoded(flat: View) -> View | None:
    """Drop what is invisible and decode escapes; None when there is nothing to do."""
    if not any(hint in flat.body for hint in HINTS):
        return None
    assembly = _Assembly()
    seen = 0
    for found in ESCAPE.finditer(flat.body):
        start, end = found.span()
        if start > seen:
            assembly.add(flat.body[seen:start], seen, 0)
        assembly.add(_decode(found), start, end - start)
        seen = end
    if not seen:
        return None
    assembly.add(flat.body[seen:], seen, 0)
    return assembly.finish()


class _Assembly:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.starts: list[int] = []
        self.origins: list[int] = []
        self.widths: list[int] = []
        self.length = 0

    def add(self, part: bytes, origin: int, width: int) -> None:
        if part:
            self.pieces.append(part)
            self.starts.append(self.length)
            self.origins.append(origin)
            self.widths.append(width)
            self.length += len(part)

    def finish(self) -> View:
        return View(b"".join(self.pieces), self.starts, self.origins, self.widths)


def normalise(text: str) -> bytes:
    """Give the fully decoded view of `text` alone."""
    flat = view_flat(text)
    return (view_decoded(flat) or flat).body


def _decode(found: re.Match[bytes]) -> bytes:
    code = found[1] or found[2] or found[3] or found[5]
    if code:
        return _to_ascii(int(code, 16))
    if found[4]:
        return PLAIN_ESCAPES.get(found[4], found[4])
    if found[6]:
        return _decode_entity(found[6])
    return b""


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
