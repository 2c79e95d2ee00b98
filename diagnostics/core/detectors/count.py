"""The `count` detector: so many failures in a window, however many calls went well."""

from math import ceil

from diagnostics.core.detectors.judgement import Counts, Judgement

DEFAULT_FAILED = 3
DEFAULT_SECONDS = 3600
CLEARED_SHARE = 0.8


def judge_count(least: int, counts: Counts) -> Judgement:
    """Fire at `least` failures; clear below 0.8 of that."""
    clears = counts.failed < ceil(CLEARED_SHARE * least)
    return Judgement(counts.failed >= least, clears, counts, float(least))
