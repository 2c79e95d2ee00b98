"""What a call costs, and how costs grow with the size of the work."""

import math
import time
from collections.abc import Callable, Sequence
from statistics import median


def seconds_of(
    work: Callable[[], object],
    rounds: int,
    batch: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return the median seconds of a call, CPU time by default; the first call does not count."""
    work()
    return median(timed(work, clock, batch) for _ in range(rounds))


def timed(
    work: Callable[[], object], clock: Callable[[], float] = time.process_time, batch: int = 1
) -> float:
    """Return the seconds of a call, CPU time by default."""
    begun = clock()
    for _ in range(batch):
        work()
    return (clock() - begun) / batch


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return e of cost ~ size**e, from the first to the last size: 1 is linear, 0 flat."""
    return math.log(costs[-1] / costs[0]) / math.log(sizes[-1] / sizes[0])
