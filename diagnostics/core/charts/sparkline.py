"""Sparkline: the degraded share of each stretch of time, oldest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from diagnostics.core.buckets import Bucket
from diagnostics.core.charts.ticks import draw_ticks


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
    buckets: Sequence[Bucket],
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


def describe_sparkline(buckets: Sequence[Bucket], hours: int) -> str:
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


def _bar_height(bucket: Bucket, top: float, height: int) -> int:
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
