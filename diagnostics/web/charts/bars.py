"""Bars: counts over time, shares of a whole, parts of all calls, rates with intervals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby
from math import sqrt

from diagnostics.analysis.statistics import LEAST_FAILURES
from diagnostics.figures import Tone, percent, plural, points
from diagnostics.store.windows import RunBucket
from diagnostics.web.charts.scales import Scale


@dataclass(frozen=True, slots=True)
class Bars:
    """SVG paths of ordinary and hot bars, a baseline, ticks, and the same in words."""

    width: int
    height: int
    bars: str
    text: str
    hot: str = ""
    baseline_y: float | None = None
    ticks: str = ""
    is_grounded: bool = False


STUB = 2
"""The height of a bar of nothing."""
APART = 2
"""Ticks that are nearer to each other (in the drawing's units) are drawn as one."""


def draw_ticks(shares: Iterable[float], width: float, height: int) -> str:
    """Draw marks as an SVG path, each at its share of the width."""
    drawn: list[int] = []
    for x in sorted(round(share * width) for share in shares):
        if not drawn or x - drawn[-1] > APART:
            drawn.append(x)
    return "".join(f"M{x} 0v{height}" for x in drawn)


def _strokes(tall: Sequence[int], begin: int, pitch: int, height: int) -> str:
    """Strokes in the middle of their places, each measured from where the one before ended.

    The page gives them their width.
    """
    written, x, y = "", 0, 0
    for place, long in enumerate(tall, start=begin):
        if not long:
            continue
        at = place * pitch + pitch // 2
        written += f"m{at - x} {y}v-{long}" if written else f"M{at} {height}v-{long}"
        x, y = at, long
    return written


def columns(counts: Sequence[int], hours: float, risen: int = 0) -> Bars:
    """Draw a column a stretch, hot from where failures rose; `risen` are more than usual."""
    top, left_edge, pitch, height = max(counts, default=0), _rise_of(counts, risen), 5, 26
    tall = [max(round(count / top * (height - 2)), 2) if count else 0 for count in counts]
    return Bars(
        width=max(len(counts) * pitch, 1),
        height=height,
        bars=_strokes(tall[:left_edge], 0, pitch, height),
        hot=_strokes(tall[left_edge:], left_edge, pitch, height),
        text=_describe_columns(counts, hours),
        is_grounded=True,
    )


def _rise_of(counts: Sequence[int], risen: int) -> int:
    """Return the stretch from which so many more failed; behind the last if that is noise.

    Noise is anything within three standard deviations, or fewer than five failures. The begin
    is where the sum of what exceeds the usual is lowest, as in a CUSUM.
    """
    usual = sum(counts) - risen
    if sum(counts) < LEAST_FAILURES or risen < 3 * sqrt(max(usual, 1)):
        return len(counts)
    excess = list(accumulate((count - usual / len(counts) for count in counts), initial=0.0))
    return max(range(len(excess)), key=lambda place: (-excess[place], place))


def _describe_columns(counts: Sequence[int], hours: float) -> str:
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


SPARK_PITCH, SPARK_HEIGHT = 4, 28


def sparkline(
    buckets: Sequence[RunBucket],
    baseline: float | None,
    top: float,
    hours: int,
    hot_from: int | None = None,
    ticks: Sequence[float] = (),
) -> Bars:
    """Draw a bar per bucket; `top` is the share that fills the height, one a table.

    Bars from index `hot_from` on are the degradation that goes on now; `ticks` are marks,
    each at its share of the whole stretch of time.
    """
    # Runs without a failure keep a stub: nothing went wrong is not nothing ran.
    tall = [round(max(_rise(b.share / top), STUB)) if b.runs else 0 for b in buckets]
    hot_start = len(buckets) if hot_from is None else hot_from
    return Bars(
        width=max(len(buckets) * SPARK_PITCH, 1),
        height=SPARK_HEIGHT,
        bars=_skyline(tall[:hot_start], 0),
        hot=_skyline(tall[hot_start:], hot_start),
        baseline_y=None if baseline is None else round(SPARK_HEIGHT - _rise(baseline / top), 1),
        ticks=draw_ticks(ticks, len(buckets) * SPARK_PITCH, SPARK_HEIGHT),
        text=_describe_sparkline(buckets, hours),
    )


def _skyline(tall: Sequence[int], begin: int) -> str:
    """Strokes, and one line along the ground for stubs that follow each other.

    Most buckets of a healthy series are stubs: a stroke for each would be half of a page.
    """
    ground, place = "", begin
    for is_stub, group in groupby(tall, lambda long: long == STUB):
        length = len(list(group))
        ground += (
            f"M{place * SPARK_PITCH} {SPARK_HEIGHT - 1}h{length * SPARK_PITCH}" if is_stub else ""
        )
        place += length
    strokes = [0 if count == STUB else count for count in tall]
    return ground + _strokes(strokes, begin, SPARK_PITCH, SPARK_HEIGHT)


def _rise(share: float) -> float:
    return sqrt(min(share, 1.0)) * SPARK_HEIGHT


def _describe_sparkline(buckets: Sequence[RunBucket], hours: int) -> str:
    """Say the peak and the end of the curve, for readers who do not see it."""
    with_runs = [bucket for bucket in buckets if bucket.runs]
    if not with_runs:
        return f"no runs in the last {hours} h"
    peak = max(with_runs, key=lambda bucket: bucket.share)
    return (
        f"degraded share, last {hours} h: "
        f"highest {peak.share * 100:.0f} % of {plural(peak.runs, 'run')}, "
        f"latest {with_runs[-1].share * 100:.0f} % of {with_runs[-1].runs}"
    )


LANE_WIDTH, LANE_HEIGHT, LOWEST = 960, 26, 2


def lane(
    slots: Mapping[int, int], totals: Sequence[int], ticks: Sequence[float] = (), name: str = ""
) -> Bars:
    """Draw a version's calls against all calls of each slot; ticks are shares of the width."""
    pitch = LANE_WIDTH / max(len(totals), 1)
    bars = ""
    for slot, calls in sorted(slots.items()):
        if calls and totals[slot]:
            tall = max(round(calls / totals[slot] * LANE_HEIGHT), LOWEST)
            bars += f"M{slot * pitch:.1f} {LANE_HEIGHT}v-{tall}h{pitch - 1:.1f}v{tall}z"
    drawn = draw_ticks(ticks, LANE_WIDTH, LANE_HEIGHT)
    # For readers who do not see the bar.
    counts, everything = sum(slots.values()), sum(totals)
    share = counts / everything if everything else 0.0
    last = max(slots, default=0)
    latest = slots.get(last, 0) / totals[last] if totals and totals[last] else 0.0
    text = f"{name}: {share:.0%} of all calls, {latest:.0%} of the latest"
    return Bars(LANE_WIDTH, LANE_HEIGHT, bars, text, ticks=drawn)


MOST_PARTS, SHARES_WIDTH = 4, 132
GAP = 1.0


@dataclass(frozen=True, slots=True)
class BarPart:
    x: float
    width: float
    rank: int
    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Shares:
    width: float
    parts: tuple[BarPart, ...]
    text: str


def shares(counts: Mapping[str, int]) -> Shares:
    """Divide a bar by counts; what is beyond the fourth name is drawn as one."""
    total = sum(counts.values())
    if not total:
        return Shares(SHARES_WIDTH, (), "none")
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    kept, rest = ranked[: MOST_PARTS - 1], ranked[MOST_PARTS - 1 :]
    if len(rest) > 1:
        rest = [(f"{len(rest)} more", sum(count for _, count in rest))]
    parts: list[BarPart] = []
    x = 0.0
    for rank, (name, count) in enumerate([*kept, *rest]):
        long = count / total * SHARES_WIDTH
        part = BarPart(round(x, 1), round(max(long - GAP, 1), 1), rank, name, count / total)
        parts.append(part)
        x += long
    text = ", ".join(f"{part.name} {percent(part.share, 0)}" for part in parts)
    return Shares(SHARES_WIDTH, tuple(parts), text)


SUCCEED = "succeed"


@dataclass(frozen=True, slots=True)
class IntervalBar:
    """Horizontal places of the parts, and the same in words; `base_x` is what to compare with."""

    tone: Tone
    x: float
    low_x: float
    range_width: float
    base_x: float | None
    grid: str
    text: str
    width: float


def interval_bar(
    scale: Scale,
    tone: Tone,
    rate: float,
    low: float,
    high: float,
    baseline: float | None,
    word: str = "degraded",
) -> IntervalBar:
    """Lay out a rate on the common axis; all figures are shares of 0 to 1.

    `word` says what the rate is of; of successes there is no baseline.
    """
    against = "no baseline yet" if baseline is None else f"baseline {baseline * 100:.1f} %"
    words = [
        f"{rate * 100:.1f} % {word}",
        f"95 % interval {low * 100:.1f} to {high * 100:.1f} %",
        *([] if word == SUCCEED else [against]),
    ]
    return _lay_out(scale, tone, (rate, low, high), baseline, ", ".join(words))


def difference_bar(
    scale: Scale, tone: Tone, difference: float, low: float, high: float
) -> IntervalBar:
    """Lay out a difference of shares, -1 to 1, around zero."""
    text = f"{points(difference)}, 95 % interval {points(low)} to {points(high)}"
    return _lay_out(scale, tone, (difference, low, high), 0.0, text)


def _lay_out(
    scale: Scale, tone: Tone, figures: tuple[float, float, float], base: float | None, text: str
) -> IntervalBar:
    x, low_x, high_x = map(scale.position, figures)
    return IntervalBar(
        tone,
        x,
        low_x,
        round(max(high_x - low_x, 1.0), 1),
        None if base is None else scale.position(base),
        _grid(scale),
        text,
        scale.width,
    )


@lru_cache
def _grid(scale: Scale) -> str:
    """Return the lines of an axis, which all bars of a table have."""
    return "".join(f"M{tick.place} 0v20" for tick in scale.ticks())
