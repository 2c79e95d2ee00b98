"""Putting markers where findings are; markers that are there already stay whole."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from diagnostics.core.preview import MARKER
from diagnostics.core.redaction.checks import FILLER

MARK = "[REDACTED:"
FLAT_MARK = MARK.encode()

# start, end, kind, rank: of findings that overlap, the kind of the lowest rank is named
Finding = tuple[int, int, str, int]
Span = tuple[int, int]


def marker_spans(text: str) -> list[Span]:
    """Give the places of the markers in a text."""
    return [found.span() for found in MARKER.finditer(text)] if MARK in text else []


def blank(flat: bytes, markers: Iterable[Span]) -> bytes:
    """Fill markers with a byte that no rule takes for part of anything."""
    if not markers:
        return flat
    body = bytearray(flat)
    for start, end in markers:
        body[start:end] = FILLER * (end - start)
    return bytes(body)


def merge(findings: Sequence[Finding], markers: list[Span]) -> list[tuple[int, int, str]]:
    """Join what overlaps and leave alone what is a marker already, sorted by place."""
    if len(findings) == 1 and not markers:
        return [findings[0][:3]]
    starts = [opening for opening, _ in markers]
    around = (_around(finding, markers, starts) for finding in findings)
    merged: list[Finding] = []
    for start, end, kind, rank in sorted(filter(None, around), key=_place):
        if merged and start < merged[-1][1]:
            first, last, old, best = merged[-1]
            merged[-1] = (
                first,
                max(end, last),
                *((kind, rank) if rank < best else (old, best)),
            )
        else:
            merged.append((start, end, kind, rank))
    return [(start, end, kind) for start, end, kind, _ in merged]


def _place(finding: Finding) -> tuple[int, int, int]:
    return finding[0], -finding[1], finding[3]


def _around(finding: Finding, markers: list[Span], starts: list[int]) -> Finding | None:
    """Widen a finding to hold whole markers; None when it lies within one."""
    if not markers:
        return finding
    start, end, kind, rank = finding
    left = bisect_right(starts, start) - 1
    if left >= 0 and start < markers[left][1]:
        if end <= markers[left][1]:
            return None
        start = markers[left][0]
    right = bisect_left(starts, end) - 1
    if right >= 0:
        end = max(end, markers[right][1])
    return start, end, kind, rank


def mask_flat(flat: bytes, spans: list[tuple[int, int, str]]) -> tuple[bytes, list[Span]]:
    """Give what `mask` makes of a text without markers, folded and filled, and its markers."""
    parts: list[bytes] = []
    markers: list[Span] = []
    seen = size = 0
    for start, end, kind in spans:
        size += start - seen
        width = len(MARK) + len(kind) + 1
        parts += (flat[seen:start], FILLER * width)
        markers.append((size, size + width))
        size += width
        seen = end
    return b"".join((*parts, flat[seen:])), markers


def mask(text: str, spans: list[tuple[int, int, str]]) -> str:
    """Replace each span by its marker."""
    parts: list[str] = []
    seen = 0
    for start, end, kind in spans:
        parts += (text[seen:start], f"{MARK}{kind}]")
        seen = end
    return "".join((*parts, text[seen:]))
