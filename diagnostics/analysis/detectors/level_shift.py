"""What is recent in a series, and when lasting trouble becomes its baseline."""

from collections import deque
from collections.abc import Iterable, Sequence

from diagnostics.analysis.detectors.baseline import (
    FEW_CALLS,
    FEW_SECONDS,
    HIGHEST_EXPECTED,
    HISTORY_SECONDS,
    LEAST_CALLS,
)
from diagnostics.analysis.detectors.call_history import Block, Split, append_to
from diagnostics.analysis.detectors.results import WindowCounts
from diagnostics.analysis.statistics import wilson_interval

RECENT_SECONDS = 1800
RECENT_CALLS = 50
Stretch = tuple[float, int, int]
"""When it ended, its calls and failures."""


class Recent:
    """Counts that forget what is no longer recent."""

    __slots__ = ("_calls", "_failed", "_stretches")

    def __init__(self, stretches: Iterable[Sequence[float]] = ()) -> None:
        """Begin with what was kept."""
        self._stretches = deque((at, int(n), int(k)) for at, n, k in stretches)
        self._calls = sum(n for _, n, _ in self._stretches)
        self._failed = sum(k for _, _, k in self._stretches)

    @property
    def stretches(self) -> list[Stretch]:
        """What is to be kept."""
        return list(self._stretches)

    @property
    def counts(self) -> WindowCounts:
        """Return all recent calls."""
        return WindowCounts(self._calls, self._failed)

    def add(self, at: float, calls: int, failed: int) -> None:
        """Add a stretch that ended at a time; what is older than recent goes."""
        stretches = self._stretches
        stretches.append((at, calls, failed))
        self._calls += calls
        self._failed += failed
        while (
            stretches[0][0] < at - RECENT_SECONDS and self._calls - stretches[0][1] >= RECENT_CALLS
        ):
            _, gone, gone_failed = stretches.popleft()
            self._calls -= gone
            self._failed -= gone_failed


LASTING_SECONDS = 3 * 86_400
UNKNOWN_SECONDS = 86_400
"""Sooner where nothing was known to be usual before."""
Z_99 = 2.326348


class Lasting:
    """The calls of a series while its alarm is on, by hours: three days, 14 where they are rare."""

    __slots__ = ("_blocks",)

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        """Begin with what was kept."""
        self._blocks = deque(blocks)

    @property
    def blocks(self) -> list[Block]:
        """What is remembered, oldest first."""
        return list(self._blocks)

    def add(self, at: float, split: Split) -> None:
        """Remember calls that ended at a time."""
        append_to(self._blocks, Block(at, split))
        while self._is_past(self._blocks[0].at, at):
            self._blocks.popleft()

    def _is_past(self, begun: float, at: float) -> bool:
        """Whether a block is too old; where calls are rare, three days say too little."""
        if begun >= at - LASTING_SECONDS:
            return False
        return begun < at - HISTORY_SECONDS or _count(self._blocks)[1] >= LEAST_CALLS

    def is_usual(self, fired_at: float, at: float, *, was_known: bool) -> bool:
        """Whether a trouble has become the usual level of its series.

        It lasts for three days (one, where nothing was known before) and 200 calls; where
        calls are rare, 50 in five days will do. Its later half is not surely worse than its
        earlier one, and not nearly all fails.
        """
        lasting = LASTING_SECONDS if was_known else UNKNOWN_SECONDS
        if at - fired_at < lasting:
            return False
        blocks = self.blocks
        middle = len(blocks) // 2
        earlier, later = _count(blocks[:middle]), _count(blocks[middle:])
        calls, failed = earlier[1] + later[1], earlier[0] + later[0]
        is_rare = blocks[-1].at - blocks[0].at >= FEW_SECONDS
        if calls < (FEW_CALLS if is_rare else LEAST_CALLS) or failed > HIGHEST_EXPECTED * calls:
            return False
        worse = wilson_interval(*later, Z_99)[0]
        return worse <= wilson_interval(*earlier, Z_99)[1]


def _count(blocks: Iterable[Block]) -> tuple[float, float]:
    """Return failures and calls."""
    failed = calls = 0.0
    for block in blocks:
        calls += block.split.calls
        failed += sum(kind.failed for kind in block.split)
    return failed, calls
