"""Bars: counts over time, shares of a whole, one cell per attempt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from diagnostics.figures import percent, plural
from diagnostics.store.windows import RunBucket
from diagnostics.web.charts.marks import Tone
from diagnostics.web.charts.series import draw_ticks


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


MOST_PARTS = 4
GAP = 1.0


@dataclass(frozen=True, slots=True)
class BarPart:
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
    parts: tuple[BarPart, ...]
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
    parts: list[BarPart] = []
    x = 0.0
    for rank, (name, count) in enumerate([*kept, *rest]):
        long = count / total * width
        part = BarPart(round(x, 1), round(max(long - GAP, 1), 1), rank, name, count / total)
        parts.append(part)
        x += long
    text = ", ".join(f"{part.name} {percent(part.share, 0)}" for part in parts)
    return Shares(width, tuple(parts), text)


MOST_CELLS = 24


@dataclass(frozen=True, slots=True)
class StripCell:
    """One cell: its place, its tone, what it stands for."""

    x: int
    tone: Tone
    label: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Cells from left to right, and the same in words."""

    width: int
    cells: tuple[StripCell, ...]
    text: str


def strip(attempts: Sequence[tuple[Tone, str]], pitch: int = 10) -> Strip:
    """Lay out the latest attempts; bad cells are drawn taller, never colour alone."""
    shown = attempts[-MOST_CELLS:]
    cells = tuple(
        StripCell(index * pitch, tone, label) for index, (tone, label) in enumerate(shown)
    )
    words = ", ".join(label for _, label in shown) or "none"
    return Strip(max(len(cells) * pitch - 2, 0), cells, f"attempts: {words}")


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Two SVG paths (ordinary and hot bars), the baseline, and the same in words."""

    width: int
    height: int
    bars: str
    hot: str
    baseline_y: float | None
    ticks: str
    text: str


def sparkline(
    buckets: Sequence[RunBucket],
    baseline: float | None,
    top: float,
    hours: int,
    hot_from: int | None = None,
    pitch: int = 4,
    height: int = 28,
    ticks: Sequence[float] = (),
) -> Sparkline:
    """Draw a bar per bucket; `top` is the share that fills the height, one a table.

    Bars from index `hot_from` on are the degradation that goes on now; `ticks` are marks,
    each at its share of the whole stretch of time.
    """
    tall = [_bar_height(bucket, top, height) for bucket in buckets]
    places = range(len(buckets))
    begun = len(buckets) if hot_from is None else hot_from
    return Sparkline(
        width=max(len(buckets) * pitch, 1),
        height=height,
        bars=_strokes([(i, tall[i]) for i in places if i < begun], pitch, height),
        hot=_strokes([(i, tall[i]) for i in places if i >= begun], pitch, height),
        baseline_y=None if baseline is None else round(height - _rise(baseline, top, height), 1),
        ticks=draw_ticks(ticks, len(buckets) * pitch, height),
        text=describe_sparkline(buckets, hours),
    )


def describe_sparkline(buckets: Sequence[RunBucket], hours: int) -> str:
    """Say the peak and the end of the curve, for readers who do not see it."""
    with_runs = [bucket for bucket in buckets if bucket.runs]
    if not with_runs:
        return f"no runs in the last {hours} h"
    peak = max(with_runs, key=lambda bucket: bucket.share)
    return (
        f"degraded share, last {hours} h: "
        f"highest {peak.share * 100:.0f} % of {peak.runs} runs, "
        f"latest {with_runs[-1].share * 100:.0f} % of {with_runs[-1].runs}"
    )


def _rise(share: float, top: float, height: int) -> float:
    return sqrt(min(share / top, 1.0)) * height


def _bar_height(bucket: RunBucket, top: float, height: int) -> int:
    """Runs without a failure keep a stub: nothing went wrong is not nothing ran."""
    return round(max(_rise(bucket.share, top, height), 2.0)) if bucket.runs else 0


def _strokes(bars: Sequence[tuple[int, int]], pitch: int, height: int) -> str:
    """Strokes in the middle of their places, each told from where the one before ended.

    The page gives them their width.
    """
    drawn = [(index * pitch + pitch // 2, tall) for index, tall in bars if tall]
    if not drawn:
        return ""
    (first, tall), *rest = drawn
    written, x, y = [f"M{first} {height}v-{tall}"], first, tall
    for place, tall in rest:
        written.append(f"m{place - x} {y}v-{tall}")
        x, y = place, tall
    return "".join(written)
