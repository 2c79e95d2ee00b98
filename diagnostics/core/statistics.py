"""Intervals of rates."""

from math import sqrt

Z_95 = 1.959964


def wilson_interval(
    successes: int, trials: int, z: float = Z_95
) -> tuple[float, float]:
    """Give the Wilson score interval (low, high) of a share; (0, 1) without a trial.

    Raises ValueError unless 0 <= successes <= trials.
    """
    if not 0 <= successes <= trials:
        raise ValueError("a share needs 0 <= successes <= trials")
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    weight = z * z / trials
    centre = share + weight / 2
    spread = z * sqrt((share * (1 - share) + weight / 4) / trials)
    low = 0.0 if successes == 0 else (centre - spread) / (1 + weight)
    high = 1.0 if successes == trials else (centre + spread) / (1 + weight)
    return low, high
