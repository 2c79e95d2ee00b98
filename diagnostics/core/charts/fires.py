"""When a rule would have fired: bars on a line of days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

WIDTH = 300
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
    width: int = WIDTH


def lay_out_fires(
    fires: Sequence[tuple[datetime, datetime | None]], since: datetime, until: datetime
) -> Fires:
    """Lay out alarms, given as (fired, over), between two times."""
    bars = []
    for at, over in fires:
        x = _place(at, since, until)
        width = max(_place(over or until, since, until) - x, NARROWEST)
        label = f"{at:%-d %b %H:%M} to {f'{over:%-d %b %H:%M}' if over else 'now'} UTC"
        bars.append(FireBar(min(x, WIDTH - NARROWEST), width, label))
    words = "; ".join(bar.label for bar in bars[:20]) or "no alarm"
    return Fires(tuple(bars), _ticks(since, until), words)


def _ticks(since: datetime, until: datetime) -> tuple[tuple[int, str], ...]:
    first = since.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    days = range(0, (until - first).days + 1, EVERY_DAYS)
    moments = (first + timedelta(days=day) for day in days)
    places = ((_place(at, since, until), f"{at:%-d %b}") for at in moments)
    return tuple((x, day) for x, day in places if x <= WIDTH - LABEL)


def _place(at: datetime, since: datetime, until: datetime) -> int:
    share = (at - since) / (until - since)
    return round(min(max(share, 0.0), 1.0) * WIDTH)
