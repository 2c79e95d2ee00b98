"""Looks of a rule as a strip: neighbours of one tone are one bar, so that it stays light."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from diagnostics.web.charts.marks import Tone

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
