"""What a detector says of a slice at one moment, and the counts it says it of."""

from typing import NamedTuple


class WindowCounts(NamedTuple):
    """Calls of a window, and how many of them failed."""

    calls: int = 0
    failed: int = 0

    @property
    def share(self) -> float:
        """The share that failed, 0 without a call."""
        return self.failed / self.calls if self.calls else 0.0


class Judgement(NamedTuple):
    """Whether to fire and whether an earlier fire is over; between both nothing changes.

    `counts` and `bound` are what was compared: the bound is a share (0 to 1) for rates and
    a number for counts.
    """

    fires: bool
    clears: bool
    counts: WindowCounts
    bound: float
