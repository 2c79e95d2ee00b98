"""The curve of a model: shares in equal slots, as blocks of text and as a small picture.

The picture is a PNG of five colours, written with zlib only. Mail clients show it on light and dark
backgrounds: the background is transparent, and each colour is legible on both.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from struct import pack
from zlib import compress, crc32

from diagnostics.store.windows import RunBucket

WIDTH, HEIGHT = 1120, 200
"""In pixels, twice the displayed size."""
EDGE, DASH, AXIS = 5, 16, 2
LEAST_TOP = 0.05
PAPER, CALM, LINE, BAD, BAD_EDGE = range(5)
COLOURS = bytes.fromhex("000000 7c8794 7c8794 d6453b d6453b")
OPACITY = bytes((0, 70, 255, 90, 255))
BLOCKS = "▁▂▃▄▅▆▇█"
EMPTY = "·"
MOST_SLOTS = 31
SLOT_WIDTHS = tuple(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12, 24, 48, 168))


def top_of(shares: Sequence[float | None]) -> float:
    """Return the share at the upper edge, at least 5 %, so that noise does not look alarming."""
    return max([LEAST_TOP, *(share or 0.0 for share in shares)])


def draw_curve(
    shares: Sequence[float | None], baseline: float | None = None, bad_from: int | None = None
) -> bytes:
    """Return a PNG of shares, oldest first; None without runs, red from `bad_from` on."""
    top = top_of([*shares, baseline])
    rows: Iterator[bytes] = (_row(height, shares, top, bad_from) for height in range(HEIGHT, 0, -1))
    if baseline is not None:
        # Dashes over three rows.
        at = HEIGHT - _level(baseline, top)
        rows = (
            bytes(LINE if x // DASH % 2 else pixel for x, pixel in enumerate(row))
            if abs(place - at) <= 1
            else row
            for place, row in enumerate(rows)
        )
    pixels = b"".join(b"\0" + row for row in rows)
    head = pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", head),
        (b"PLTE", COLOURS),
        (b"tRNS", OPACITY),
        (b"IDAT", compress(pixels, 9)),
    )
    chunks = (
        pack(">I", len(body)) + kind + body + pack(">I", crc32(kind + body))
        for kind, body in (*parts, (b"IEND", b""))
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _row(height: int, shares: Sequence[float | None], top: float, bad_from: int | None) -> bytes:
    if height <= AXIS:
        return bytes([LINE]) * WIDTH
    row = bytearray(WIDTH)
    for place, share in enumerate(shares):
        if share is None or height > _level(share, top):
            continue
        is_bad = bad_from is not None and place >= bad_from
        is_edge = height > _level(share, top) - EDGE
        colour = (BAD_EDGE if is_edge else BAD) if is_bad else (LINE if is_edge else CALM)
        begin, end = (WIDTH * at // len(shares) for at in (place, place + 1))
        row[begin:end] = bytes([colour]) * (end - begin)
    return bytes(row)


def _level(share: float, top: float) -> int:
    return round(share / top * (HEIGHT - AXIS - EDGE)) + AXIS + EDGE


def sparkline(buckets: Sequence[RunBucket]) -> str:
    """Return the degraded share of each bucket as blocks; a middle dot without runs.

    The full block is the largest share, at least 5 %.
    """
    top, full = top_of([bucket.share for bucket in buckets]), len(BLOCKS)
    return "".join(
        BLOCKS[min(int(bucket.share / top * full), full - 1)] if bucket.runs else EMPTY
        for bucket in buckets
    )


def slot_width(span: timedelta) -> timedelta:
    """Return the smallest width that cuts a period into at most 31 slots."""
    fitting = (width for width in SLOT_WIDTHS if span <= MOST_SLOTS * width)
    return next(fitting, SLOT_WIDTHS[-1])


def slot_count(span: timedelta) -> int:
    """Return how many slots a period has; the last is longer or shorter on a change of clocks."""
    return min(max(round(span / slot_width(span)), 1), MOST_SLOTS)
