"""How costs grow with the size of the work: one number instead of a curve."""

import math
from collections.abc import Sequence


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return e of cost ~ size**e, from the first to the last size: 1 is linear, 0 flat."""
    return math.log(costs[-1] / costs[0]) / math.log(sizes[-1] / sizes[0])
