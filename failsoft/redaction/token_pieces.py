"""Split tokens: wrapped over lines, or concatenated from string literals."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from failsoft.redaction.checks import NUMBERED_WORD, has_digit, has_letter, is_random, is_worded
from failsoft.redaction.re2_search import Span, locator, spans_of

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
MOST_CHARACTERS = 1_024
# A piece that is not alone on its line must be longer, to differ from ordinary text.
ALONE, AMONG_WORDS = 6, 12

KindOf = Callable[[bytes, int], tuple[str, int] | None]


class _Piece(NamedTuple):
    end: int
    text: bytes
    # An unsure piece is kept when a sure one follows.
    is_sure: bool


def trigger(heads: Sequence[str]) -> str:
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
    locate = locator(trigger(heads).encode())

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
    while len(pieces) < MOST_PIECES and size < MOST_CHARACTERS:
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
