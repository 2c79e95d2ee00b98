"""Ticks: marks as lines from top to bottom of a small drawing."""

from collections.abc import Iterable

APART = 2
"""Ticks that are nearer to each other (in the drawing's units) are drawn as one."""


def draw_ticks(shares: Iterable[float], width: float, height: int) -> str:
    """Draw marks as an SVG path, each at its share of the width."""
    drawn: list[int] = []
    for x in sorted(round(share * width) for share in shares):
        if not drawn or x - drawn[-1] > APART:
            drawn.append(x)
    return "".join(f"M{x} 0v{height}" for x in drawn)
