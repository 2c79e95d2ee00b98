"""Calls that are remembered together, an hour or ten minutes of them, and as plain numbers."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from diagnostics.core.detectors.calls import Kind, Split

HOUR_SECONDS = 3600
Numbers = Sequence[float]
"""A block as plain numbers: its time, then calls and failures of each kind."""


class Block(NamedTuple):
    """Some calls in a row, and when the last of them was."""

    at: float
    split: Split


def append_to(blocks: deque[Block], block: Block, seconds: int = HOUR_SECONDS) -> bool:
    """Add a block to the last one where both are of one hour, or of so many seconds.

    Returns whether they were.
    """
    last = blocks[-1] if blocks else None
    if last is not None and block.at // seconds == last.at // seconds:
        blocks[-1] = Block(block.at, last.split.plus(block.split))
        return True
    blocks.append(block)
    return False


def write_block(block: Block) -> Numbers:
    """Give a block as numbers."""
    return [block.at, *(number for kind in block.split for number in kind)]


def read_block(numbers: Numbers) -> Block:
    """Read what `write_block` gave."""
    at, *counts = numbers
    n = [int(count) for count in counts]
    kinds = Kind(n[0], n[1]), Kind(n[2], n[3]), Kind(n[4], n[5])
    return Block(at, Split(*kinds))
