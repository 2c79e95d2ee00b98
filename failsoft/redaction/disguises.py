"""Disguised secrets: encoded, wrapped over lines, or concatenated from string literals.

Runs of base64, hex and lists of bytes are decoded and searched.
"""

import re
import zlib
from binascii import Error, a2b_base64
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from failsoft.redaction.checks import NUMBERED_WORD, has_digit, has_letter, is_random, is_worded
from failsoft.redaction.re2_search import Span, locator, spans_of

# The pattern of texts that are searched, for RE2.
TRIGGER = rb"[A-Za-z0-9+/_-]{20}"
locate_run = locator(rb"[A-Za-z0-9+/_-]{20,}={0,2}", is_longest=True)
NEXT_LINES = re.compile(rb"(?:[ \t\\rn]{0,4}\r?\n[ \t]{0,8}[A-Za-z0-9+/_-]{4,}={0,2})+")
# Bytes next to a part of a run; empty at the ends of a text.
RUN_BYTES = frozenset(
    bytes([byte]) for byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=-"
)
HEX_DIGITS = b"0123456789abcdefABCDEF"
TO_STANDARD = bytes.maketrans(b"-_", b"+/")
UNPRINTABLE = bytes(range(9)) + bytes(range(14, 32)) + bytes(range(127, 256))
LOW_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"
MOST_CHARACTERS = 65_536

# Bytes one by one: hex pairs, decimal numbers, quoted-printable.
LIST_TRIGGER = rb"(?:[0-9A-Fa-f]{2}[ :,-]){15}|(?:[0-9]{1,3}, ?){15}|(?:=[0-9A-F]{2}){8}"
locate_list = locator(
    rb"(?:[0-9A-Fa-f]{2}[ :,-]){15,}[0-9A-Fa-f]{2}|(?:[0-9]{1,3}, ?){15,}[0-9]{1,3}"
    rb"|(?:=[0-9A-F]{2}|=\r?\n){8,}",
    is_longest=True,
)
# Prefixes of base64 of gzip and zlib, and the window bits that read both.
COMPRESSED = (b"H4sI", b"eJ", b"eN", b"eA")
GZIP_OR_ZLIB = 47

Holds = Callable[[bytes], bool]


def find_wrapped(body: bytes, holds: Holds, covered: Sequence[Span] = ()) -> Iterator[Span]:
    """Yield the spans of runs whose decoded text has a secret according to `holds`.

    Runs within `covered` spans are masked already and skipped.
    """
    for start, end in spans_of(locate_run, body):
        if any(first <= start and end <= last for first, last in covered):
            continue
        run = body[start : min(end, start + MOST_CHARACTERS)]
        text = _read(run)
        if text and holds(text):
            more = NEXT_LINES.match(body, end)
            yield start, more.end() if more else end


def find_listed(body: bytes, holds: Holds, _covered: Sequence[Span] = ()) -> Iterator[Span]:
    """Yield the spans of byte lists whose text has a secret."""
    for start, end in spans_of(locate_list, body):
        text = _read_list(body[start : min(end, start + MOST_CHARACTERS)])
        if _is_text(text) and holds(text):
            yield start, end


def _read_list(run: bytes) -> bytes:
    if run.startswith(b"="):
        return bytes.fromhex(run.translate(None, b"=\r\n").decode())
    numbers = run.split(b",")
    if len(numbers) > 1:
        decimal = [int(number) if number.strip().isdigit() else 256 for number in numbers]
        if max(decimal) < 256:
            return bytes(decimal)
    digits = run.translate(None, b" :,-")
    return b"" if digits.translate(None, HEX_DIGITS) else _from_hex(digits)


def _from_hex(digits: bytes) -> bytes:
    return bytes.fromhex(digits[: len(digits) // 2 * 2].decode())


def _read(run: bytes) -> bytes:
    run = run.removeprefix(b"0x")
    if run.startswith(COMPRESSED):
        text = _inflate(_unwrap(run.rstrip(b"=").translate(TO_STANDARD)))
        if text:
            return text if _is_text(text) else b""
    if not run.translate(None, HEX_DIGITS):
        text = _from_hex(run)
        return text if _is_text(text) else b""
    standard = run.rstrip(b"=").translate(TO_STANDARD)
    for skip in range(4):
        # Every fourth digit of base64 of ASCII begins with a zero bit.
        if not standard[skip : skip + 64 : 4].translate(None, LOW_DIGITS):
            text = _unwrap(standard[skip:])
            if _is_text(text):
                return text
    return b""


def _unwrap(run: bytes) -> bytes:
    try:
        return a2b_base64(run[: len(run) - (len(run) % 4 == 1)] + b"==")
    except Error:
        return b""


def _inflate(packed: bytes) -> bytes:
    """Return the start of the decompressed data; its size is bounded."""
    try:
        return zlib.decompressobj(GZIP_OR_ZLIB).decompress(packed, MOST_CHARACTERS)
    except zlib.error:
        return b""


def _is_text(text: bytes) -> bool:
    """Whether bytes are printable, except for up to two at the end, where a run may be cut."""
    return len(text) >= 8 and len(text[:-2].translate(None, UNPRINTABLE)) == len(text[:-2])


# The characters of a piece, and the start of a seam after one; for RE2.
INNER = "[A-Za-z0-9_.+/~%$-]"
BEGINS = r"""(?:[ \t]{0,3}[\\\r\n|]|["'`<=&\x00])"""
RUN = re.compile(f"{INNER}+".encode())
# A line break with its prefix and suffix: table, quotation, diff, comment, number.
BREAK = re.compile(
    rb"(?:[ \t]{0,3}\|?[ \t]{0,3}[\\=]?\r?\n[ \t]{0,40}"
    rb"(?:(?:[>|+*#;-]{1,3}|//|\|[ \t]{1,20}\||[0-9]{1,5} ?[|:])[ \t]{0,8}){0,2}"
    rb"|<br ?/?>\s{0,8}|(?P<inline><wbr ?/?>|&shy;|\x00{1,8}))"
)
# From the end of a literal to the start of the next; a comma separates list items.
LITERALS = re.compile(
    rb"\\?[\"'`](?:[\s\\]{0,40}(?P<list>,)|[\s\\]{0,40}(?:\+{1,2}|\.{1,2}|&|~|\|\||<<|<>))?"
    rb"[\s\\]{0,60}(?:[A-Za-z_$][\w.$]{0,20} ?\+= ?)?[fFrRbBuU]{0,2}\\?[\"'`]"
)
LINE_END = re.compile(rb"[\\|,;)\]]{0,3}[ \t]{0,3}[\\|]?(?:\r?\n|$)|[\"'`<=\x00&]")
# The most prefixes that are read in one text.
MOST_PLACES = 100
MOST_PIECES = 12
MOST_JOINED = 1_024
# A piece that is not alone on its line must be longer, to differ from ordinary text.
ALONE, AMONG_WORDS = 6, 12

KindOf = Callable[[bytes, int], tuple[str, int] | None]


class _Piece(NamedTuple):
    end: int
    text: bytes
    # An unsure piece is kept when a sure one follows.
    is_sure: bool


def broken_trigger(heads: Sequence[str]) -> str:
    """Return the RE2 pattern of a piece that begins a token and ends at a seam."""
    prefixes = {
        head[:end]
        for head in heads
        for end in range(3, len(head) + 1)
        if end == len(head) or head[end - 1] in "-_."
    }
    alternatives = "|".join(map(re.escape, sorted(prefixes)))
    return f"(?:{alternatives}){INNER}*{BEGINS}"


def broken_finder(
    heads: Sequence[str],
) -> Callable[[bytes, KindOf], Iterator[tuple[Span, str, int]]]:
    """Return the function that finds split tokens.

    `kind_of` returns the kind and rank of a joined text that extends beyond its first piece.
    """
    locate = locator(broken_trigger(heads).encode())

    def find(body: bytes, kind_of: KindOf) -> Iterator[tuple[Span, str, int]]:
        last_end = 0
        for at, _ in islice(spans_of(locate, body), MOST_PLACES):
            if at < last_end or (at and body[at - 1 : at].isalnum()):
                continue
            first = RUN.match(body, at)
            if first is None:
                continue
            pieces = _read_pieces(body, first.end())
            joined = b"".join((first.group(), *(piece.text for piece in pieces)))
            kind = kind_of(joined, len(first.group())) if pieces else None
            if kind:
                last_end = pieces[-1].end
                yield (at, pieces[-1].end), *kind

    return find


def _read_pieces(body: bytes, end: int) -> list[_Piece]:
    """Return the pieces after a seam at `end`; their number is bounded."""
    pieces: list[_Piece] = []
    sure_count = size = 0
    while len(pieces) < MOST_PIECES and size < MOST_JOINED:
        piece = _next_piece(body, end)
        if piece is None:
            break
        end = piece.end
        size += len(piece.text)
        pieces.append(piece)
        sure_count = len(pieces) if piece.is_sure else sure_count
    return pieces[:sure_count]


def _next_piece(body: bytes, end: int) -> _Piece | None:
    seam = LITERALS.match(body, end)
    is_joined = seam is not None and not seam["list"]
    if seam is None:
        seam = BREAK.match(body, end)
        is_joined = seam is not None and bool(seam["inline"])
    match = RUN.match(body, seam.end()) if seam else None
    if match is None:
        return None
    piece = match.group()
    is_alone = LINE_END.match(body, match.end()) is not None
    is_long = len(piece) >= (ALONE if is_alone else AMONG_WORDS)
    is_sure = is_joined or (is_long and (is_random(piece) or _is_odd(piece)))
    return _Piece(match.end(), piece, is_sure) if is_sure or is_alone else None


def _is_odd(piece: bytes) -> bool:
    """Whether letters or digits are unlike any word."""
    if not has_letter(piece):
        return len(piece) >= AMONG_WORDS
    if has_digit(piece) and NUMBERED_WORD.fullmatch(piece) is None:
        return True
    letters = piece.translate(None, b"0123456789-_.")
    return not letters.islower() and not is_worded(letters)
