"""A mark on an axis of time: what was changed, or what was noticed, at a moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

SHAPES = {"incident": "bad", "release": "live"}
"""The tone whose shape stands for a kind; all others are drawn as the ring."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One moment: `kind` is prompt, schema, release, validator or incident."""

    at: datetime
    kind: str
    label: str
    url: str | None = None

    @property
    def words(self) -> str:
        """What the mark says, for readers who do not see it."""
        return f"{self.kind} {self.label}"


def place_of(mark: Mark, since: datetime, span: timedelta, width: float) -> float:
    """Give the distance of a mark from the left end of an axis, within its ends."""
    share = (mark.at - since) / span if span else 0.0
    return round(min(max(share, 0.0), 1.0) * width, 1)


def told(marks: Sequence[Mark]) -> str:
    """Name marks in one line; empty without any."""
    return "; ".join(f"{mark.words} at {mark.at:%d %b %H:%M} UTC" for mark in marks)
