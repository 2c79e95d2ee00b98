"""Tokens with a known prefix, and how they differ from words."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from failsoft.redaction.checks import (
    HASH,
    ULID,
    UUID,
    case_changes,
    has_digit,
    is_mixed,
    is_placeholder,
    is_random,
    is_worded,
)
from failsoft.redaction.re2_search import Span

CLOSING = b"\"'`}]).,;>?! \r\n\t\\"
MANY = 16
# The least length of a tail whose prefix is glued to a word.
GLUED = 20
LONG_HEAD = 5
# In a shorter tail, repeated characters are no evidence.
SHORT_TAIL = 8
# A longer match that is no token is not searched for another one.
LONGEST_SECOND_LOOK = 256

Find = Callable[[bytes, bytes], Iterator[Span]]


@dataclass(frozen=True, slots=True)
class TokenFamily:
    """A row of `tokens` in the rules, with the characters of its alphabet."""

    kind: str
    heads: tuple[str, ...]
    alphabet: str
    least: int
    weak: bool = False
    sure: bool = False
    check: str | None = None
    before: str | None = None
    excluded: str | None = None


def token_trigger(family: TokenFamily) -> str:
    """Return the RE2 pattern of texts that are searched for a family of tokens."""
    return "|".join(
        f"{re.escape(head)}[{family.alphabet}]{{{_first(head, family.least, family.weak)}}}"
        for head in family.heads
    )


def token_finder(family: TokenFamily, *, whole: bool = False) -> Find:
    """Return the function that finds the tokens of one family.

    With `whole`, it skips possible names: truncated tokens, words, versions, digests.
    """
    weak, least, heads = family.weak, family.least, family.heads
    whole = whole and not family.sure
    is_hex = "A-F" in family.alphabet
    tail = _whole(family)
    check = EXTRA[family.check] if family.check else None
    # A prefix that begins with another one is found with it.
    firsts = [
        head
        for head in heads
        if not any(head != other and head.startswith(other) for other in heads)
    ]
    anchors = tuple(head.encode() for head in firsts)

    def find(body: bytes, _low: bytes) -> Iterator[Span]:
        for anchor in anchors:
            at = body.find(anchor)
            while at >= 0:
                match = tail.match(body, at)
                next_at = at + len(anchor)
                if (
                    match
                    and (family.before or _is_apart(body, at, match))
                    and _is_token(body, match, least, weak, check)
                    and (not whole or _is_whole(match[2], least, is_hex or not weak))
                ):
                    next_at = match.end()
                    yield _start(body, at, family.before), next_at - _dots(match)
                elif match and match.end() - at > LONGEST_SECOND_LOOK:
                    next_at = match.end()
                at = body.find(anchor, next_at)

    return find


def _whole(family: TokenFamily) -> re.Pattern[bytes]:
    alternatives = "|".join(_head(head, family.heads) for head in family.heads)
    exclusion = f"(?!{family.excluded})" if family.excluded else ""
    # An equals sign pads base64 at the end; elsewhere it separates a name and a value.
    inner = family.alphabet.replace("=", "")
    run = f"[{inner}]+"
    if inner != family.alphabet:
        run = f"(?:[{inner}]{{60,}}=[{inner}]+|{run}={{0,2}})"
    return re.compile(f"({alternatives}){exclusion}({run})".encode())


def _head(head: str, heads: Sequence[str]) -> str:
    """Return the pattern of a prefix that is not part of a longer prefix."""
    rests = [
        re.escape(other[len(head) :]) for other in heads if other != head and other.startswith(head)
    ]
    return re.escape(head) + (f"(?!{'|'.join(rests)})" if rests else "")


def _is_apart(body: bytes, at: int, match: re.Match[bytes]) -> bool:
    """Whether no letter precedes the token, or its prefix and tail are unlike any word."""
    if not body[at - 1 : at].isalnum() or at == 0:
        return True
    head, tail = match[1], match[2]
    is_distinct = len(head) >= 4 and not head.isalnum()
    return is_distinct and len(tail) >= GLUED and is_random(tail)


def _start(body: bytes, at: int, before: str | None) -> int:
    if before is None:
        return at
    match = re.search(f"[{before}]*$".encode(), body[max(0, at - 64) : at])
    return at - len(match.group()) if match else at


def _dots(match: re.Match[bytes]) -> int:
    """Return the number of trailing full stops, which are not part of the token."""
    return len(match[2]) - len(match[2].rstrip(b"."))


def _first(head: str, least: int, weak: bool) -> int:
    """Return the least length of a tail to check further."""
    if not weak or (len(head) >= 3 and head[-1] in "_-."):
        return 1 if len(head) >= 4 else min(least, 3)
    # A token that is cut at the end of the text needs four characters.
    return min(least, 4 if len(head) >= 4 else 12)


def _is_token(
    body: bytes,
    match: re.Match[bytes],
    least: int,
    weak: bool,
    check: Callable[[bytes, bytes], bool] | None,
) -> bool:
    head, tail = match[1], match[2].rstrip(b".")
    if not tail or is_placeholder_tail(tail):
        return False
    if check is not None:
        return check(head, tail)
    if len(tail) >= least:
        if weak:
            return _is_made_up(tail) and not _is_slug(tail)
        return len(tail) >= MANY or not (tail.isalpha() and tail.islower())
    rest = body[match.end() : match.end() + 12]
    return (
        rest.strip(CLOSING) == b""
        and not YEAR.fullmatch(tail)
        and (
            not weak
            or (is_mixed(tail) and not _is_slug(tail))
            or not (
                _is_numbered(head, tail)
                or tail[1:].islower()
                or (tail.isupper() and len(head) < LONG_HEAD)
            )
        )
    )


def _is_numbered(head: bytes, tail: bytes) -> bool:
    """Whether a word continues with a number, like versions and key names."""
    return tail.isdigit() and (head.endswith(b"-") or head == b"key_")


def _is_whole(tail: bytes, least: int, may_be_hex: bool) -> bool:
    """Whether the random parts of a tail are as long as those of a token.

    A digest at the end of a name does not count, unless all tokens of the family are hex.
    """
    if len(tail) < least or _is_slug(tail):
        return False
    if may_be_hex and UUID.match(tail):
        return True
    parts = PARTING.split(tail)
    wild = sum(len(part) for part in parts[:1] if _is_wild(part))
    wild += sum(len(part) for part in parts[1:] if _is_wild(part) and not DIGEST.fullmatch(part))
    return wild >= LEAST_WILD


def _is_wild(part: bytes) -> bool:
    """Whether letters and digits alternate unlike any word, numbered or not."""
    letters = part.translate(None, b"0123456789")
    changes = sum(
        char.isdigit() != following.isdigit() for char, following in pairwise(part.decode())
    )
    if letters and not letters.islower() and not letters.isupper():
        is_numbered = len(part) >= LEAST_WILD and changes * 4 >= len(part)
        return is_numbered or not is_worded(letters)
    if len(part) < MANY or not letters:
        return False
    return len(part) >= LONG_RUN or letters.isupper() or changes * 5 >= len(part)


def _is_made_up(tail: bytes) -> bool:
    """Whether a tail has letters with digits, many digits, or mixed case."""
    if has_digit(tail):
        return is_mixed(tail) or len(tail) >= 16
    return case_changes(tail) >= 3


def _is_slug(tail: bytes) -> bool:
    """Whether a tail is words, versions or dates separated by dashes."""
    return SLUG.fullmatch(tail) is not None


YEAR = re.compile(rb"(?:19|20)[0-9]{2}")
# No piece is of two kinds, or both would be tried for each of a slug.
PIECE = rb"(?:[a-z]+[0-9]{0,2}|[0-9]{1,8}[a-z]?|v(?:[0-9]{3,8}[a-z]?|[0-9]{1,2}[a-z]))?"
SLUG = re.compile(PIECE + rb"(?:[-_.]" + PIECE + rb")+")
PARTING = re.compile(rb"[^A-Za-z0-9]+")
DIGEST = re.compile(rb"[0-9a-f]{7,64}")
# The least number of random characters in a token, and a length beyond any word.
LEAST_WILD, LONG_RUN = 12, 32


def is_placeholder_tail(tail: bytes) -> bool:
    """Whether a tail is an example: one repeated letter, or a word like "example"."""
    if len(tail) < SHORT_TAIL:
        return len(tail) >= 3 and (len(set(tail)) == 1 or tail.isalpha()) and is_placeholder(tail)
    return is_placeholder(tail)


def _airtable(head: bytes, tail: bytes) -> bool:
    if head == b"pat":
        return re.match(rb"[A-Za-z0-9]{14}\.[a-f0-9]{8}", tail) is not None
    return re.fullmatch(rb"[A-Za-z0-9]{14}", tail) is not None and is_mixed(tail)


def _identity(_head: bytes, tail: bytes) -> bool:
    return len(tail) >= 30 and is_mixed(tail) and not HASH.fullmatch(tail) and not _is_slug(tail)


def _unbroken(_head: bytes, tail: bytes) -> bool:
    """Whether a long part is random, or several parts are unlike any word."""
    parts = re.split(rb"[-_]", tail)
    is_long = any(len(part) >= LONG_PART and is_random(part) for part in parts)
    wild = sum(len(part) for part in parts if _is_wild(part))
    return (is_long or wild >= LONG_PART) and not _is_slug(tail)


def _keyed(head: bytes, tail: bytes) -> bool:
    """Whether the tail after a word for a key is one long part, or many random ones."""
    parts = re.split(rb"[-_]", tail.rstrip(b"="))
    if HASH.fullmatch(tail) or ULID.match(tail):
        return head in SURE_HEADS
    if len(parts[0]) >= LONG_PART:
        return is_random(parts[0])
    most = max(parts, key=len)
    is_long = len(tail) >= LONG_TAIL and len(most) >= SOME_PART
    return is_long and is_random(most) and case_changes(most) > 1


def _parted(_head: bytes, tail: bytes) -> bool:
    parts = tail.split(b".")
    return 2 <= len(parts) <= MOST_PARTS and any(
        len(part) >= LONG_PART and is_random(part) and not _is_slug(part) for part in parts
    )


LONG_PART = 18
HEX_DIGITS = 40
SOME_PART, LONG_TAIL = 8, 28
# Of a token of the vaults that came before 1.10.
SERVICE = 24
# These prefixes are always keys, even before a hash.
SURE_HEADS = (b"_live_", b"live_", b"_sk_", b"_pat_", b"_oat_", b"_uat_", b"_secret_")
LONGEST_CAPITAL = 40
MOST_PARTS = 4
EXTRA = {
    "hashed": lambda _head, tail: len(tail) == HEX_DIGITS and is_mixed(tail),
    "unbroken": _unbroken,
    "keyed": _keyed,
    "capital": lambda _head, tail: is_mixed(tail) and len(tail) <= LONGEST_CAPITAL,
    "parted": _parted,
    "percent": lambda _head, tail: b"%" in tail and is_mixed(tail),
    "airtable": _airtable,
    "failsoft": lambda _head, tail: re.match(rb"[0-9a-f]{8,}(?:_|$)", tail) is not None,
    "identity": _identity,
    "service": lambda _head, tail: len(tail) == SERVICE and has_digit(tail) and _is_wild(tail),
}
