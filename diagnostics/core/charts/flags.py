"""Ticks and numbered marks of an axis of time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from diagnostics.core.marks import Mark

WIDTH = 1000
# Numbers nearer to each other than this are read as one.
NUMBER_WIDTH = 18


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on an axis: percent of its width, or units of its height."""

    place: float
    label: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """A mark on the axis of time, with its number."""

    x: float
    number: int
    mark: Mark

    @property
    def place(self) -> float:
        """Percent of the width."""
        return round(self.x / WIDTH * 100, 2)


def number_flags(flags: Sequence[Flag]) -> Iterator[Tick]:
    """Label flags with their numbers; those that stand too close share one label: 1-3."""
    near: list[Flag] = []
    for flag in flags:
        if near and flag.x - near[-1].x > NUMBER_WIDTH:
            yield _label(near)
            near = []
        near.append(flag)
    if near:
        yield _label(near)


def _label(flags: Sequence[Flag]) -> Tick:
    first, last = flags[0], flags[-1]
    numbers = dict.fromkeys((str(first.number), str(last.number)))
    return Tick(round((first.place + last.place) / 2, 2), "-".join(numbers))
