"""Encoded secrets: runs of base64, hex and lists of bytes are decoded and searched."""

import re
import zlib
from binascii import Error, a2b_base64
from collections.abc import Callable, Iterator, Sequence

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
    """Return the printable text of a run, or nothing."""
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
