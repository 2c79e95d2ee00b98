"""Lanes: one a version, a bar a slot of time, as high as its share of the calls then."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WIDTH = 960
HEIGHT = 26
LOWEST = 2
APART = 2.5
"""Ticks that are nearer to each other are drawn as one."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The bars of one version as an SVG path, and the same in words."""

    width: int
    height: int
    bars: str
    ticks: str
    text: str


def lane(
    slots: Mapping[int, int],
    totals: Sequence[int],
    ticks: Sequence[float] = (),
    name: str = "",
) -> Lane:
    """Draw a version's calls against all calls of each slot; ticks are shares of the width."""
    pitch = WIDTH / max(len(totals), 1)
    bars = []
    for slot, calls in sorted(slots.items()):
        if calls and totals[slot]:
            tall = max(round(calls / totals[slot] * HEIGHT), LOWEST)
            x = slot * pitch
            bars.append(f"M{x:.1f} {HEIGHT}v-{tall}h{pitch - 1:.1f}v{tall}z")
    return Lane(
        WIDTH,
        HEIGHT,
        "".join(bars),
        "".join(f"M{x:.1f} 0v{HEIGHT}" for x in _apart(ticks)),
        describe_lane(slots, totals, name),
    )


def _apart(ticks: Iterable[float]) -> list[float]:
    drawn: list[float] = []
    for x in sorted(share * WIDTH for share in ticks):
        if not drawn or x - drawn[-1] >= APART:
            drawn.append(x)
    return drawn


def describe_lane(slots: Mapping[int, int], totals: Sequence[int], name: str) -> str:
    """Say how much of the calls a version has, for readers who do not see it."""
    mine, everything = sum(slots.values()), sum(totals)
    share = mine / everything if everything else 0.0
    last = max(slots, default=0)
    latest = slots.get(last, 0) / totals[last] if totals and totals[last] else 0.0
    return f"{name}: {share:.0%} of all calls, {latest:.0%} of the latest"
