"""Time lines: versions as lanes, and when a rule would have fired."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from diagnostics.web.charts.series import draw_ticks

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


FIRES_WIDTH = 300
NARROWEST = 3
EVERY_DAYS = 7
LABEL = 40
"""Room that the last label needs."""


@dataclass(frozen=True, slots=True)
class FireBar:
    """One alarm: its place and width in pixels, and when it was."""

    x: int
    width: int
    label: str


@dataclass(frozen=True, slots=True)
class Fires:
    """Bars and the ticks of the axis, as (x, day)."""

    bars: tuple[FireBar, ...]
    ticks: tuple[tuple[int, str], ...]
    text: str
    width: int = FIRES_WIDTH


def lay_out_fires(
    fires: Sequence[tuple[datetime, datetime | None]], since: datetime, until: datetime
) -> Fires:
    """Lay out alarms, given as (fired, over), between two times."""
    bars = []
    for at, over in fires:
        x = _place(at, since, until)
        width = max(_place(over or until, since, until) - x, NARROWEST)
        label = f"{at:%-d %b %H:%M} to {f'{over:%-d %b %H:%M}' if over else 'now'} UTC"
        bars.append(FireBar(min(x, FIRES_WIDTH - NARROWEST), width, label))
    words = "; ".join(bar.label for bar in bars[:20]) or "no alarm"
    return Fires(tuple(bars), _ticks(since, until), words)


def _ticks(since: datetime, until: datetime) -> tuple[tuple[int, str], ...]:
    first = since.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    days = range(0, (until - first).days + 1, EVERY_DAYS)
    moments = (first + timedelta(days=day) for day in days)
    places = ((_place(at, since, until), f"{at:%-d %b}") for at in moments)
    return tuple((x, day) for x, day in places if x <= FIRES_WIDTH - LABEL)


def _place(at: datetime, since: datetime, until: datetime) -> int:
    share = (at - since) / (until - since)
    return round(min(max(share, 0.0), 1.0) * FIRES_WIDTH)
