"""Lanes: one a version, a bar a slot of time, as high as its share of the calls then."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diagnostics.core.charts.ticks import draw_ticks

WIDTH = 960
HEIGHT = 26
LOWEST = 2


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
        draw_ticks(ticks, WIDTH, HEIGHT),
        describe_lane(slots, totals, name),
    )


def describe_lane(slots: Mapping[int, int], totals: Sequence[int], name: str) -> str:
    """Say how much of the calls a version has, for readers who do not see it."""
    mine, everything = sum(slots.values()), sum(totals)
    share = mine / everything if everything else 0.0
    last = max(slots, default=0)
    latest = slots.get(last, 0) / totals[last] if totals and totals[last] else 0.0
    return f"{name}: {share:.0%} of all calls, {latest:.0%} of the latest"
