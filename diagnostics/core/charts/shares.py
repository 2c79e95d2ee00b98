"""Shares: one bar that is divided among a few names, largest first, the rest together."""

from collections.abc import Mapping
from dataclasses import dataclass

from diagnostics.core.wording import percent

MOST_PARTS = 4
GAP = 1.0


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the bar: its place and what it stands for."""

    x: float
    width: float
    rank: int
    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Shares:
    """The parts from left to right, and the same in words."""

    width: float
    parts: tuple[Part, ...]
    text: str


def shares(counts: Mapping[str, int], width: float = 132) -> Shares:
    """Divide a bar by counts; what is beyond the fourth name is drawn as one."""
    total = sum(counts.values())
    if not total:
        return Shares(width, (), "none")
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    kept, rest = ranked[: MOST_PARTS - 1], ranked[MOST_PARTS - 1 :]
    if len(rest) > 1:
        rest = [(f"{len(rest)} more", sum(count for _, count in rest))]
    parts: list[Part] = []
    x = 0.0
    for rank, (name, count) in enumerate([*kept, *rest]):
        long = count / total * width
        part = Part(round(x, 1), round(max(long - GAP, 1), 1), rank, name, count / total)
        parts.append(part)
        x += long
    text = ", ".join(f"{part.name} {percent(part.share, 0)}" for part in parts)
    return Shares(width, tuple(parts), text)
