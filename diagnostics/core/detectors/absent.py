"""The `absent` detector: nothing came for longer than it ever should take."""

from diagnostics.core.detectors.judgement import Counts, Judgement

DEFAULT_SECONDS = 3600.0


def judge_absence(silent_seconds: float, longest_seconds: float, counts: Counts) -> Judgement:
    """Fire when the silence is longer than allowed; clear with the first sign of life."""
    fires = silent_seconds > longest_seconds
    return Judgement(fires, not fires, counts, longest_seconds)
