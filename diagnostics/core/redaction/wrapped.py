"""Secrets that were encoded whole: runs of base64 and hex are read and looked into."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterator

LEAST = 20
# What a text must hold to be looked at, as RE2.
TRIGGER = rb"[A-Za-z0-9+/_-]{20}"
RUN = re.compile(rb"[A-Za-z0-9+/_-]{20,}+={0,2}")
NEXT_LINES = re.compile(
    rb"(?:[ \t\\rn]{0,4}\r?\n[ \t]{0,8}[A-Za-z0-9+/_-]{4,}+={0,2})+"
)
HEX = re.compile(rb"(?:0x)?((?:[0-9a-fA-F]{2}){10,})")
TO_STANDARD = bytes.maketrans(b"-_", b"+/")
UNPRINTABLE = bytes(range(9)) + bytes(range(14, 32)) + bytes(range(127, 256))
MOST_CHARACTERS = 65_536

Holds = Callable[[bytes], bool]


def find_wrapped(body: bytes, holds: Holds) -> Iterator[tuple[int, int]]:
    """Yield the spans of runs that, decoded, hold a secret; `holds` looks into them."""
    for found in RUN.finditer(body):
        start, end = found.span()
        if any(holds(text) for text in _readings(found.group()[:MOST_CHARACTERS])):
            more = NEXT_LINES.match(body, end)
            yield start, more.end() if more else end


def _readings(run: bytes) -> Iterator[bytes]:
    """Decode a run in every way that gives printable text."""
    inner = HEX.fullmatch(run)
    if inner:
        text = bytes.fromhex(inner[1].decode())
        if _is_text(text):
            yield text
            return
    standard = run.rstrip(b"=").translate(TO_STANDARD)
    for skip in range(4):
        text = _unwrap(standard[skip:])
        if _is_text(text):
            yield text
            return


def _unwrap(run: bytes) -> bytes:
    try:
        return b64decode(run[: len(run) - (len(run) % 4 == 1)] + b"==")
    except Error:
        return b""


def _is_text(text: bytes) -> bool:
    """Ask for printable text, but for a byte or two where a run was cut."""
    return len(text) >= 8 and len(text[:-2].translate(None, UNPRINTABLE)) == len(
        text[:-2]
    )
