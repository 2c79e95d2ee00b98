"""The normalised view of a text: folded to ASCII, with escapes decoded.

Rules match on this view, and the text itself is masked: no disguise hides a secret, and text
without secrets is unchanged. The view is ASCII, so byte and character offsets are equal.
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
# Words for a password in other scripts, each with an English name of the same length.
FOREIGN_NAMES = {
    "密码": "pw", "密碼": "pw", "口令": "pw", "암호": "pw", "비밀번호": "upwd", "暗証番号": "upwd",
    "パスワード": "mypwd", "パスコード": "mypwd", "סיסמה": "mypwd", "пароль": "passwd",
    "пароля": "passwd", "κωδικός": "yourpwd", "पासवर्ड": "yourpwd",
    "ключ api": "apitoken", "api-ключ": "apitoken",
    "รหัสผ่าน": "password", "كلمة المرور": "thepassword", "كلمة السر": "anypasswd",
}  # fmt: skip
# The following word for "is" becomes a colon.
COPULAS = "はが是为為는은"
FOREIGN = re.compile(f"({'|'.join(map(re.escape, FOREIGN_NAMES))})([{COPULAS}]?)", re.IGNORECASE)
# The same in ASCII-only JSON, escaped any number of times.
ESCAPED_NAMES = {
    "".join(f"{ord(sign):04x}" for sign in name): english.encode()
    for name, english in FOREIGN_NAMES.items()
}
ESCAPED_NAME = b"|".join(
    rb"\\{1,8}u".join(name[at : at + 4].encode() for at in range(0, len(name), 4))
    for name in ESCAPED_NAMES
)
ESCAPED_IS = "|".join(f"{ord(sign):04x}" for sign in COPULAS).encode()
# One outer group, so that `split` alternates text and escapes. Bounded runs keep the
# search linear on a page of backslashes.
ESCAPE = re.compile(
    rb"([\x00\\%&=](?:(?<=\x00)\x00*"
    rb"|(?<=\\)\\{0,7}(?:u(?i:(?:"
    + ESCAPED_NAME
    + rb")(?:\\{1,8}u(?:"
    + ESCAPED_IS
    + rb"))?)|u\{0{0,4}[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}"
    rb"|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[nrtbf\"'/`])"
    rb"|(?<=[^\r\n]{68}[^=\r\n]=)\r?\n(?=[A-Za-z0-9])|(?<=%)(?:25){0,3}[0-9a-fA-F]{2}"
    rb"|(?<=&)(?:amp;){0,3}(?:#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|quot|apos|lt|gt|amp"
    rb"|equals|colon|sol|lowbar|hyphen|commat|period|num|nbsp);))"
)
# The patterns of texts with a decoded view, for RE2; the easy ones are all backslashes.
HINT = (
    rb"\x00|\\(?:[uUx]|[0-3][0-7]{2})|=\r?\n[A-Za-z0-9]|%[0-9a-fA-F]{2}"
    rb"|&(?:#[0-9xX]|[a-z]{2,8};)"
)
EASY_HINT = rb"\\[nrtbf\"'/`\\]"
EASY = ((rb"\\", b"\\"),) * 3 + (
    (rb"\n", b"\n"), (rb"\"", b'"'), (rb"\'", b"'"), (rb"\/", b"/"), (rb"\t", b"\t"),
    (rb"\r", b"\r"), (rb"\b", b" "), (rb"\f", b" "), (rb"\`", b"`"),
)  # fmt: skip
# A longer escape encodes more than one character.
LONGEST_SIGN = 11
CODE = re.compile(rb"\\+(?:u\{0*([0-9a-fA-F]+)\}|[uUx]([0-9a-fA-F]+))")
PLAIN_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b" ", b"f": b" "}


def _build_table() -> dict[int, str]:
    content = tomllib.loads(LOOK_ALIKES_FILE.read_text(encoding="utf-8"))
    table = {ord(odd): plain for plain, looks in content["look_alikes"].items() for odd in looks}
    for code in (*LETTERS, *COMPATIBLE):
        folded = unicodedata.normalize("NFKD", chr(code))[:1]
        plain = folded if folded.isascii() and folded.isprintable() else None
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
# A run of escapes with this many letters is a disguise.
HIDDEN_LETTERS = 8
# Up to this many different letters, separate replacements are faster than a translation.
FEW = 48


class View:
    """ASCII bytes to match on, with the mapping back to offsets in the text.

    `parts` alternates plain text and escapes, `decoded` has their decoded bytes; without
    parts, offsets are the same in both.
    """

    __slots__ = (
        "_begins", "_decoded", "_hidden", "_origins", "_parts", "_run_ends", "_run_starts", "body",
    )  # fmt: skip

    def __init__(
        self, body: bytes, parts: list[bytes] | None = None, decoded: list[bytes] | None = None
    ) -> None:
        self.body = body
        self._parts = parts
        self._decoded = decoded or []
        self._begins: list[int] = []
        self._origins: list[int] = []
        self._run_starts: dict[int, int] = {}
        self._run_ends: dict[int, int] = {}
        self._hidden: dict[int, int] = {}

    @property
    def is_plain(self) -> bool:
        return self._parts is None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the text of a span in the view.

        If every character is escaped, letters too, the whole run is one disguise.
        """
        if self._parts is None:
            return start, end
        first, (span_start, _) = self._locate(start)
        last, (_, span_end) = self._locate(end - 1)
        if self._is_disguise(first):
            span_start = self._origins[self._run_starts[first]]
        if self._is_disguise(last):
            span_end = self._origins[self._run_ends[last]]
        return span_start, span_end

    def _locate(self, at: int) -> tuple[int, tuple[int, int]]:
        if not self._begins:
            self._measure()
        piece = bisect_right(self._begins, at) - 1
        if piece % 2:
            return piece, (self._origins[piece], self._origins[piece + 1])
        origin = self._origins[piece] + at - self._begins[piece]
        return piece, (origin, origin + 1)

    def _is_disguise(self, piece: int) -> bool:
        """Whether an escape is part of a run of escapes that hides letters."""
        return piece % 2 == 1 and self._hidden[self._run_starts[piece]] >= HIDDEN_LETTERS

    def _measure(self) -> None:
        """Compute the offsets of each piece in view and text, and the runs of escapes."""
        parts, decoded = self._parts or [], self._decoded
        self._begins, self._origins = _sums(decoded), _sums(parts)
        run_start = 1
        for piece in range(1, len(parts), 2):
            if parts[piece - 1]:
                run_start = piece
            self._run_starts[piece] = run_start
            self._hidden[run_start] = self._hidden.get(run_start, 0) + decoded[piece].isalnum()
        run_end = len(parts)
        for piece in range(len(parts) - 2, 0, -2):
            if parts[piece + 1]:
                run_end = piece + 1
            self._run_ends[piece] = run_end


def _sums(parts: list[bytes]) -> list[int]:
    return [0, *accumulate(map(len, parts))]


def _fold_error(error: UnicodeError) -> tuple[bytes, int]:
    """Replace characters that are not ASCII, by one byte each."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    run = error.object[error.start : error.end]
    return run.translate(TABLE).encode("ascii", "replace"), error.end


def _name_in_english(match: re.Match[str]) -> str:
    return FOREIGN_NAMES[match[1].lower()] + (":" if match[2] else "")


codecs.register_error("failsoft-fold", _fold_error)


def fold(text: str, *, with_names: bool = True) -> bytes:
    """Return text folded to ASCII one to one: full-width, accents, look-alikes.

    `with_names` replaces words for a password in other scripts by English names.
    """
    if text.isascii():
        return text.encode()
    if with_names:
        text = FOREIGN.sub(_name_in_english, text)
    odd = set(text).difference(PRINTABLE)
    if len(odd) <= FEW:
        for letter in odd:
            text = text.replace(letter, ONE_TO_ONE.get(letter, "?"))
    return text.encode("ascii", "failsoft-fold")


def without_backslashes(flat: bytes) -> bytes:
    """Return bytes with one-letter escapes decoded, escaped any number of times."""
    for escaped, plain in EASY:
        flat = flat.replace(escaped, plain)
    return flat


def decode(flat: bytes) -> View | None:
    """Return the view without invisible characters and escapes; None if nothing changes."""
    parts = ESCAPE.split(flat)
    if len(parts) == 1:
        return None
    decoded = parts.copy()
    decoded[1::2] = map(_decode, parts[1::2])
    return View(b"".join(decoded), parts, decoded)


def normalise(text: str, *, with_names: bool = True) -> bytes:
    flat = fold(text, with_names=with_names)
    view = decode(flat)
    return flat if view is None else view.body


@lru_cache(maxsize=8192)
def _decode(escape: bytes) -> bytes:
    first = escape[:1]
    if first in (b"\0", b"="):
        return b""
    if first == b"%":
        return _to_ascii(int(escape[-2:], 16))
    if first == b"&":
        text = escape.decode("ascii")
        for _ in range(4):
            text = unescape(text)
        return _to_ascii(ord(text)) if len(text) == 1 else b"?"
    if len(escape) > LONGEST_SIGN and first == b"\\":
        digits = escape.translate(None, b"\\u").decode().lower()
        if digits in ESCAPED_NAMES:
            return ESCAPED_NAMES[digits]
        if digits[:-4] in ESCAPED_NAMES:
            return ESCAPED_NAMES[digits[:-4]] + b":"
    code = CODE.fullmatch(escape)
    if code:
        return _to_ascii(int(code[1] or code[2], 16))
    if escape[-3:].isdigit():
        return _to_ascii(int(escape[-3:], 8))
    return PLAIN_ESCAPES.get(escape[-1:], escape[-1:])


def _to_ascii(code: int) -> bytes:
    if code > 0x10FFFF:
        return b"?"
    folded = chr(code).translate(TABLE)
    return b"" if folded == GONE else folded.encode("ascii", "replace")
