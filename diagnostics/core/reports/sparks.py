"""Sparklines of block characters: what a mail can draw without a picture."""

from collections.abc import Sequence
from datetime import timedelta

from diagnostics.core.buckets import Bucket

BLOCKS = "▁▂▃▄▅▆▇█"
EMPTY = "·"
LEAST_TOP = 0.05
MOST_SLOTS = 31
WIDTHS = tuple(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12, 24, 48, 168))


def sparkline(buckets: Sequence[Bucket]) -> str:
    """Draw the degraded share of each bucket; a middle dot where nothing ran.

    The highest block is the largest share, 5 % at least: noise must not look like trouble.
    """
    top = max(LEAST_TOP, max((bucket.share for bucket in buckets), default=0.0))
    return "".join(_block(bucket, top) for bucket in buckets)


def slot_width(span: timedelta) -> timedelta:
    """Give the smallest width that cuts a period into at most 31 slots."""
    fitting = (width for width in WIDTHS if span <= MOST_SLOTS * width)
    return next(fitting, WIDTHS[-1])


def slot_count(span: timedelta) -> int:
    """Give how many slots a period has; the last is longer or shorter on a change of clocks."""
    return min(max(round(span / slot_width(span)), 1), MOST_SLOTS)


def _block(bucket: Bucket, top: float) -> str:
    if not bucket.runs:
        return EMPTY
    return BLOCKS[min(int(bucket.share / top * len(BLOCKS)), len(BLOCKS) - 1)]
