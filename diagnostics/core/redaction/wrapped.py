"""Secrets that were encoded whole: runs of base64 and hex are read and looked into."""

import re
from binascii import Error, a2b_base64
from collections.abc import Callable, Iterator

from diagnostics.core.redaction.searching import locator, spans_of

# What a text must hold to be looked at, as RE2.
TRIGGER = rb"[A-Za-z0-9+/_-]{20}"
locate_run = locator(rb"[A-Za-z0-9+/_-]{20,}={0,2}", is_longest=True)
NEXT_LINES = re.compile(
    rb"(?:[ \t\\rn]{0,4}\r?\n[ \t]{0,8}[A-Za-z0-9+/_-]{4,}+={0,2})+"
)
HEX_DIGITS = b"0123456789abcdefABCDEF"
TO_STANDARD = bytes.maketrans(b"-_", b"+/")
UNPRINTABLE = bytes(range(9)) + bytes(range(14, 32)) + bytes(range(127, 256))
LOW_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"
MOST_CHARACTERS = 65_536

Holds = Callable[[bytes], bool]


def find_wrapped(body: bytes, holds: Holds) -> Iterator[tuple[int, int]]:
    """Yield the spans of runs that, decoded, hold a secret; `holds` looks into them."""
    for start, end in spans_of(locate_run, body):
        run = body[start : min(end, start + MOST_CHARACTERS)]
        text = _read(run)
        if text and holds(text):
            more = NEXT_LINES.match(body, end)
            yield start, more.end() if more else end


def _read(run: bytes) -> bytes:
    """Decode a run to printable text, or give nothing."""
    run = run.removeprefix(b"0x")
    if not run.translate(None, HEX_DIGITS):
        text = bytes.fromhex(run[: len(run) // 2 * 2].decode())
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


def _is_text(text: bytes) -> bool:
    """Ask for printable text, but for a byte or two where a run was cut."""
    return len(text) >= 8 and len(text[:-2].translate(None, UNPRINTABLE)) == len(
        text[:-2]
    )
