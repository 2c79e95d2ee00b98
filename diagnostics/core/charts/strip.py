"""Strip: one cell per attempt, in the order in which they were made."""

from collections.abc import Sequence
from dataclasses import dataclass

from diagnostics.core.charts.mark import Tone

MOST_CELLS = 24


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: its place, its tone, what it stands for."""

    x: int
    tone: Tone
    label: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Cells from left to right, and the same in words."""

    width: int
    cells: tuple[Cell, ...]
    text: str


def strip(attempts: Sequence[tuple[Tone, str]], pitch: int = 10) -> Strip:
    """Lay out the latest attempts; bad cells are drawn taller, never colour alone."""
    shown = attempts[-MOST_CELLS:]
    cells = tuple(Cell(index * pitch, tone, label) for index, (tone, label) in enumerate(shown))
    words = ", ".join(label for _, label in shown) or "none"
    return Strip(max(len(cells) * pitch - 2, 0), cells, f"attempts: {words}")
