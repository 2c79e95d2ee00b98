"""Time lines: versions as lanes, and when a rule would have fired."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from diagnostics.web.charts.marks import Tone
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


PITCH = 4
MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class EvaluationMark:
    """One look: its tone, its word and when it was, as it is read."""

    tone: Tone
    word: str
    at: str


@dataclass(frozen=True, slots=True)
class Bar:
    """Looks in a row that found the same."""

    x: int
    width: int
    tone: Tone
    label: str


@dataclass(frozen=True, slots=True)
class Looks:
    """Bars from left to right, and the same in words."""

    width: int
    bars: tuple[Bar, ...]
    text: str

    @property
    def is_busy(self) -> bool:
        """Whether there are too many bars to draw and name each."""
        return len(self.bars) > MOST_NAMED

    @property
    def paths(self) -> list[tuple[Tone, str]]:
        """All bars of a tone as one path."""
        tones = dict.fromkeys(bar.tone for bar in self.bars)
        return [
            (tone, "".join(_box(bar) for bar in self.bars if bar.tone == tone)) for tone in tones
        ]


def _box(bar: Bar) -> str:
    top, height = (0, 14) if bar.tone == "bad" else (4, 6)
    return f"M{bar.x} {top}h{bar.width}v{height}h-{bar.width}z"


def lay_out_looks(looks: Sequence[EvaluationMark], most: int = 60) -> Looks:
    """Lay out the latest looks, the newest at the right; bad ones are drawn taller."""
    shown = looks[-most:]
    bars: list[Bar] = []
    place = 0
    for (tone, word), group in groupby(shown, lambda one: (one.tone, one.word)):
        same = list(group)
        when = same[0].at if len(same) == 1 else f"{same[0].at} to {same[-1].at}"
        label = f"{word} {len(same)} times, {when}" if len(same) > 1 else f"{word} {when}"
        bars.append(Bar(place * PITCH, len(same) * PITCH - 1, tone, label))
        place += len(same)
    words = "; ".join(bar.label for bar in bars) or "none yet"
    return Looks(most * PITCH, tuple(bars), f"last {len(shown)} looks: {words}")
