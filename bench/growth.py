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
    taken = []
    work()
    for _ in range(rounds):
        begun = clock()
        for _ in range(batch):
            work()
        taken.append((clock() - begun) / batch)
    return median(taken)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return e of cost ~ size**e, from the first to the last size: 1 is linear, 0 flat."""
    return math.log(costs[-1] / costs[0]) / math.log(sizes[-1] / sizes[0])
