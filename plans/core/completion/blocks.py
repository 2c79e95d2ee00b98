"""JSON documents that stand in an output as whole lines (X-13, stdout-json).

A document begins at the beginning of a line and ends at the end of one; what stands in a
sentence is somebody's example. Braces are matched in one pass.
"""

import re
from dataclasses import dataclass, field

# The key of a decision at any depth; whether it is the document's own shows when it is read.
_DECISION = re.compile(r"(?<![\\\w])decision[\"']?\s*[:=]")
_SYMBOLS = re.compile(r'[{}"\n]|\\.')
_MARGIN = " \t\ufeff\u200b"


def decision_blocks(text: str) -> list[str]:
    """Return the documents that hold the key `decision`, in order.

    The last one may be cut off: a brace that is never closed.
    """
    braces = _match_braces(text)
    closed = [span for span in _outermost(braces.pairs) if _ends_line(text, span[1])]
    blocks = [text[start:end] for start, end in closed]
    found = [block for block in blocks if _DECISION.search(block)]
    if braces.left_open:
        rest = _rest_after(text, braces.left_open[-1], closed)
        found += [rest] if _DECISION.search(rest) else []
    return found


@dataclass(slots=True)
class _Braces:
    """Offsets of braces that begin a line: with their partners, and without one."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    left_open: list[int] = field(default_factory=list)


def _match_braces(text: str) -> _Braces:
    found, opened = _Braces(), list[tuple[int, bool]]()
    is_quoted, line_start = False, 0
    for symbol in _SYMBOLS.finditer(text):
        match symbol.group():
            case "\n":
                # A string never goes over a line; a lone quote in prose ends with its line.
                is_quoted, line_start = False, symbol.end()
            case '"':
                is_quoted = not is_quoted
            case "{" if not is_quoted:
                before = text[line_start : symbol.start()]
                opened.append((symbol.start(), not before.strip(_MARGIN)))
                line_start = symbol.start() if before else line_start
            case "}" if not is_quoted and opened:
                start, begins_line = opened.pop()
                if begins_line:
                    found.pairs.append((start, symbol.end()))
    found.left_open = [start for start, begins_line in opened if begins_line]
    return found


def _outermost(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, end in sorted(pairs):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def _ends_line(text: str, end: int) -> bool:
    line_end = text.find("\n", end)
    return not text[end : len(text) if line_end < 0 else line_end].strip()


def _rest_after(text: str, start: int, closed: list[tuple[int, int]]) -> str:
    """The text from a brace that is never closed, without the documents that are."""
    parts, at = [], start
    for begin, end in closed:
        if begin > start and _DECISION.search(text, begin, end):
            parts.append(text[at:begin])
            at = end
    return "".join([*parts, text[at:]])
