"""Columns: how often something was seen in equal stretches of time, oldest first."""

from collections.abc import Sequence
from dataclasses import dataclass

from diagnostics.core.wording import plural


@dataclass(frozen=True, slots=True)
class Columns:
    """Two SVG paths (ordinary and hot columns), and the same in words."""

    width: int
    height: int
    bars: str
    hot: str
    text: str


def columns(counts: Sequence[int], hours: float, pitch: int = 5, height: int = 26) -> Columns:
    """Draw a column a stretch; the second half of the time is hot when it has more."""
    top = max(counts, default=0)
    middle = len(counts) // 2
    is_rising = sum(counts[middle:]) > sum(counts[:middle])
    begun = middle if is_rising else len(counts)
    drawn = [
        f"M{place * pitch + pitch // 2} {height}v-{_tall(count, top, height)}" if count else ""
        for place, count in enumerate(counts)
    ]
    return Columns(
        width=max(len(counts) * pitch, 1),
        height=height,
        bars="".join(drawn[:begun]),
        hot="".join(drawn[begun:]),
        text=_describe(counts, hours),
    )


def _tall(count: int, top: int, height: int) -> int:
    return max(round(count / top * (height - 2)), 2)


def _describe(counts: Sequence[int], hours: float) -> str:
    """Say how the halves compare and where the peak is, for readers who do not see it."""
    if not any(counts):
        return f"no failures in {hours:g} h"
    middle = len(counts) // 2
    first, second = sum(counts[:middle]), sum(counts[middle:])
    peak = max(range(len(counts)), key=lambda place: counts[place])
    ago = (len(counts) - peak - 0.5) / len(counts) * hours
    return (
        f"{plural(second, 'failure')} in the second half of {hours:g} h, {first:,} in the"
        f" first; most at once {counts[peak]:,}, about {ago:.0f} h before the end"
    )
